//! What a run does next.

use super::Engine;
use crate::{Progress, Reason, ReasonCode, Resource, Task, TaskRef, TaskStatus};

/// What a run does next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// These tasks may run, in the order of their branches. None are named when all that may run
    /// run already.
    Run(Vec<TaskRef>),
    /// Nothing may run before an answer comes, or this time (ms since 1970).
    Wait {
        /// The next time at which something happens by itself.
        wake_at_ms: Option<i64>,
        /// Whether only the time is waited for: no question is open.
        is_timer: bool,
    },
    /// The run has come to its end.
    Finished,
    /// The budget of this is used up; a person is asked, once what runs has ended.
    Spent(Resource),
    /// The run fails, once what runs has ended.
    Failed(Reason),
}

impl Engine {
    /// What the run does next, when nothing runs; `now_ms` is the store's time.
    #[must_use]
    pub fn next(&self, progress: &Progress, now_ms: i64) -> Next {
        self.next_beside(progress, now_ms, |_| false)
    }

    /// [`Engine::next`] beside the tasks that run already: those at the places that `runs` knows.
    /// They count as tasks that may run, and are not named.
    #[must_use]
    pub fn next_beside(
        &self,
        progress: &Progress,
        now_ms: i64,
        runs: impl Fn(&[u32]) -> bool,
    ) -> Next {
        if progress.has_arrived() {
            return Next::Finished;
        }
        // Of more tasks than steps only the first run, so that a run never ends over its limit.
        let in_life = progress.max_steps().saturating_sub(progress.steps());
        let budget = progress.budget().steps.unwrap_or(u64::MAX).saturating_sub(progress.steps());
        let mut left = in_life.min(budget);
        let (mut fresh, mut failed, mut first, mut may_any) = (Vec::new(), None, None, false);
        let mut is_router = self.asked_of(crate::Node::is_router);
        let mut wake_at_ms = progress.open().filter_map(crate::Interrupt::wakes_at_ms).min();
        progress.visit_tasks(|branch, inner, status| match status {
            TaskStatus::Failed | TaskStatus::Unrouted => failed = failed.or(Some(inner)),
            TaskStatus::Asked => {}
            TaskStatus::Retrying | TaskStatus::Sleeping
                if inner.starts_at_ms().is_some_and(|at| at > now_ms) =>
            {
                wake_at_ms = wake_at_ms.into_iter().chain(inner.starts_at_ms()).min();
            }
            TaskStatus::Ready | TaskStatus::Retrying | TaskStatus::Sleeping => {
                first = first.or(Some(inner));
                let is_router = is_router(inner.node());
                let may_run = is_router || left > 0;
                left = left.saturating_sub(u64::from(!is_router));
                may_any |= may_run;
                if may_run && !runs(branch) {
                    fresh.push(inner.name(branch));
                }
            }
        });
        if let Some(task) = failed {
            return Next::Failed(failed_for_good(task));
        }
        let Some(first) = first.filter(|_| !progress.is_held()) else {
            let is_timer = progress.open().next().is_none();
            return Next::Wait { wake_at_ms, is_timer };
        };
        match may_any {
            true => Next::Run(fresh),
            false if in_life > 0 => Next::Spent(Resource::Steps),
            false => Next::Failed(step_limit(progress, first)),
        }
    }

    /// A question about nodes by id; of equal nodes one after another, as in a wide fork, only
    /// the first is looked up.
    pub(super) fn asked_of<'a>(
        &'a self,
        ask: impl Fn(&crate::Node) -> bool + 'a,
    ) -> impl FnMut(&str) -> bool + 'a {
        let mut last: Option<(&'a str, bool)> = None;
        move |id| match last {
            Some((known, answer)) if known == id => answer,
            Some(_) | None => {
                let Some(node) = self.graph.node(id) else { return false };
                let answer = ask(node);
                last = Some((node.id(), answer));
                answer
            }
        }
    }
}

fn failed_for_good(task: &Task) -> Reason {
    let message = match (task.unrouted(), task.error()) {
        (Some(why), _) => why.to_owned(),
        (None, Some(error)) if error.code == "node_error" => error.message.clone(),
        (None, Some(error)) => format!("{}: {}", error.code, error.message),
        (None, None) => "failed".to_owned(),
    };
    Reason { code: ReasonCode::NodeError, message, node: Some(task.node().to_owned()) }
}

fn step_limit(progress: &Progress, next: &Task) -> Reason {
    let mut rounds: Vec<(&String, &u32)> = progress.visits().iter().collect();
    rounds.sort_by_key(|(_, visits)| std::cmp::Reverse(**visits));
    let rounds: Vec<String> =
        rounds.iter().take(5).map(|(node, visits)| format!("{node} {visits} times")).collect();
    let message = format!(
        "the run used up its {} steps; it came to {}",
        progress.max_steps(),
        rounds.join(", ")
    );
    Reason { code: ReasonCode::StepLimit, message, node: Some(next.node().to_owned()) }
}
