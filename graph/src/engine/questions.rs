//! Questions that open: gates, a node's own asks, uncertain effects, stale runs.

use super::Engine;
use crate::{
    Event, Interrupt, InterruptId, InterruptKind, NodeError, Progress, Question, Resource, Task,
    TaskRef, TaskStatus, fingerprint::of_parts,
};

impl Engine {
    pub(super) fn gates(&self, progress: &Progress, now_ms: i64) -> Vec<Event> {
        let mut events = Vec::new();
        let mut is_gated = self.asked_of(|node| node.gate().is_some());
        progress.visit_tasks(|branch, inner, status| {
            let is_new = status == TaskStatus::Ready && inner.answer().is_none();
            if is_new && is_gated(inner.node()) {
                events.extend(self.gate(progress, branch, inner, now_ms));
            }
        });
        events
    }

    /// The event that opens the gate before a task, if its node has one.
    fn gate(
        &self,
        progress: &Progress,
        branch: &[u32],
        inner: &Task,
        now_ms: i64,
    ) -> Option<Event> {
        let node = self.graph.node(inner.node())?;
        let gate = node.gate()?;
        let state = node.view(progress.state_at(branch)?);
        let task = inner.name(branch);
        let id = self.interrupt_id(progress, &task, "gate");
        let interrupt = Interrupt {
            task: Some(task),
            view: node.view.clone(),
            gate: Some(gate.name().to_owned()),
            kind: InterruptKind::Gate,
            ..Interrupt::of_question(id, gate.question(), &state).opened_at(now_ms)
        };
        Some(Event::InterruptOpened { interrupt: Box::new(interrupt) })
    }

    /// The id of one opening: the same whenever it is computed, another after a redrive.
    fn interrupt_id(&self, progress: &Progress, task: &TaskRef, key: &str) -> InterruptId {
        let (visit, round) = (task.visit.to_string(), progress.redrives().to_string());
        let id = of_parts(&["interrupt", self.run.as_str(), &task.node, &visit, key, &round]);
        InterruptId::new(id).expect("base 32 is within the alphabet of ids")
    }

    /// The event that opens a node's own question.
    #[must_use]
    #[expect(clippy::too_many_arguments, reason = "where, what and when are all needed")]
    pub fn ask(
        &self,
        progress: &Progress,
        task: &TaskRef,
        key: &str,
        question: &Question,
        now_ms: i64,
    ) -> Event {
        let id = self.interrupt_id(progress, task, &format!("ask {key}"));
        let state = progress.state_at(&task.branch).cloned().unwrap_or_default();
        let node = self.graph.node(&task.node);
        let view = node.map(|node| node.view.clone()).unwrap_or_default();
        let state = view.inside(&state);
        let interrupt = Interrupt {
            task: Some(task.clone()),
            view,
            key: Some(key.to_owned()),
            ..Interrupt::of_question(id, question, &state).opened_at(now_ms)
        };
        Event::InterruptOpened { interrupt: Box::new(interrupt) }
    }

    /// The questions about unsafe effects that an earlier owner began and did not end.
    ///
    /// # Panics
    /// Never: the events are made of the progress they are applied to.
    pub fn recover(&self, progress: &mut Progress, now_ms: i64) -> Vec<Event> {
        let mut open: Vec<(TaskRef, Vec<Option<String>>)> = Vec::new();
        let is_active = progress.is_active();
        progress.visit_tasks(|branch, inner, status| {
            if is_active && status != TaskStatus::Asked && !inner.begun().is_empty() {
                open.push((inner.name(branch), inner.begun().to_vec()));
            }
        });
        let mut events = Vec::new();
        for (task, begun) in open {
            events.extend(self.uncertain(progress, &task, &begun, ("its worker was lost", now_ms)));
        }
        events
    }

    /// The questions about what is unsafe and began in an attempt that failed, when nobody can say
    /// that nothing happened. An error that asks for a wait says so, and a permanent one repeats
    /// nothing: for these, and for a task without unsafe effects under way, there are none.
    ///
    /// # Panics
    /// Never: the events are made of the progress they are applied to.
    pub fn doubt(
        &self,
        progress: &mut Progress,
        task: &TaskRef,
        error: &NodeError,
        now_ms: i64,
    ) -> Vec<Event> {
        let begun = progress.task(task).map(|live| live.begun().to_vec()).unwrap_or_default();
        if begun.is_empty() || error.is_permanent() || error.wait().is_some() {
            return Vec::new();
        }
        let why = format!("it failed: {}", crate::printable(error.message(), 400));
        self.uncertain(progress, task, &begun, (&why, now_ms))
    }

    fn uncertain(
        &self,
        progress: &mut Progress,
        task: &TaskRef,
        begun: &[Option<String>],
        (why, now_ms): (&str, i64),
    ) -> Vec<Event> {
        let ask = |step: &Option<String>| {
            let key = format!("uncertain {}", step.as_deref().unwrap_or_default());
            let id = self.interrupt_id(progress, task, &format!("{key} {}", progress.seq()));
            let name = match step {
                Some(step) => format!("{}/{step}", task.node),
                None => task.node.clone(),
            };
            let interrupt = Interrupt {
                task: Some(task.clone()),
                key: step.clone(),
                ..Interrupt::uncertain(id, &name, why).opened_at(now_ms)
            };
            let event = Event::InterruptOpened { interrupt: Box::new(interrupt) };
            progress.apply(&event).expect("the task is live");
            event
        };
        begun.iter().map(ask).collect()
    }

    /// The question whether a run that has not moved for `idle_ms` may go on.
    ///
    /// # Panics
    /// Never: a hash is an id.
    #[must_use]
    pub fn stale(&self, progress: &Progress, idle_ms: i64, now_ms: i64) -> Event {
        let seq = progress.seq().to_string();
        let id = of_parts(&["interrupt", self.run.as_str(), "stale", &seq]);
        let id = InterruptId::new(id).expect("base 32 is within the alphabet of ids");
        let interrupt = Box::new(Interrupt::stale(id, idle_ms).opened_at(now_ms));
        Event::InterruptOpened { interrupt }
    }

    /// The question whether a run whose budget is used up may go on with a larger one.
    ///
    /// # Panics
    /// Never: a hash is an id.
    #[must_use]
    pub fn over_budget(&self, progress: &Progress, resource: Resource, now_ms: i64) -> Event {
        let seq = progress.seq().to_string();
        let parts = ["interrupt", self.run.as_str(), "budget", resource.as_str(), &seq];
        let id = InterruptId::new(of_parts(&parts));
        let id = id.expect("base 32 is within the alphabet of ids");
        let limit = progress.budget().of(resource).unwrap_or_default();
        let asked = Interrupt::over_budget(id, resource, limit, progress.used(resource));
        Event::InterruptOpened { interrupt: Box::new(asked.opened_at(now_ms)) }
    }
}
