//! Budgets: the time of a run is counted in its journal, and one that is used up asks.

use holdpoint_graph::{Event, Resource};

use super::{Flow, RunLoop};

impl RunLoop {
    /// Counts the time since the last count, if the run has a budget of it; with the next commit
    /// it is durable. Says whether there was any.
    pub(super) fn count_time(&mut self) -> bool {
        let now_ms = self.journal.now_ms();
        let ms = self.uncounted_ms(now_ms);
        if self.progress.budget().time_ms.is_none() || ms == 0 || self.progress.end().is_some() {
            return false;
        }
        self.counted_to_ms = now_ms;
        let event = Event::TimeUsed { ms };
        self.progress.apply(&event).expect("a live run uses time");
        self.journal.push(event);
        true
    }

    fn uncounted_ms(&self, now_ms: i64) -> u64 {
        u64::try_from(now_ms.saturating_sub(self.counted_to_ms)).unwrap_or(0)
    }

    pub(super) fn is_over_time(&self, now_ms: i64) -> bool {
        let used_ms = self.progress.used(Resource::Time).saturating_add(self.uncounted_ms(now_ms));
        self.progress.budget().time_ms.is_some_and(|budget_ms| budget_ms <= used_ms)
    }

    /// Opens the question whether the run may go on.
    pub(super) fn ask_for_more(&mut self, resource: Resource) -> Flow {
        self.count_time();
        let now_ms = self.journal.now_ms();
        let event = self.engine.over_budget(&self.progress, resource, now_ms);
        self.progress.apply(&event).expect("a question may open at any time");
        self.journal.push(event);
        Flow::Continue(())
    }
}
