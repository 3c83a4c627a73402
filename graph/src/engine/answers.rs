//! Answers to open questions, and what they do.

use super::Engine;
use crate::{
    Answer, Event, Failure, Interrupt, InterruptId, InterruptKind, Outcome, Progress, TaskRef,
    Update,
};

/// Why an answer cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerFault {
    /// The question is not open.
    #[error("the question {0} is not open")]
    NotOpen(InterruptId),
    /// The answer does not fit the question.
    #[error(transparent)]
    Unfit(#[from] crate::Refusal),
}

impl Engine {
    /// Takes the answer to an open question.
    ///
    /// # Errors
    /// When it is not open or does not fit; the progress is unchanged.
    ///
    /// # Panics
    /// Never: the event is made of the progress it is applied to.
    pub fn answer(
        &self,
        progress: &mut Progress,
        id: &InterruptId,
        answer: Answer,
        request: &str,
    ) -> Result<Event, AnswerFault> {
        let open = progress.question(id).ok_or_else(|| AnswerFault::NotOpen(id.clone()))?;
        crate::gate::check_answer(open.schema.as_ref(), &answer.value)?;
        let open = open.clone();
        self.take(progress, &open, answer, request)
    }

    /// Takes an answer that fits its question.
    fn take(
        &self,
        progress: &mut Progress,
        open: &Interrupt,
        answer: Answer,
        request: &str,
    ) -> Result<Event, AnswerFault> {
        let outcome = match open.kind {
            InterruptKind::Gate => self.gate_outcome(open, &answer),
            InterruptKind::Ask | InterruptKind::Budget => Outcome::Answered,
            InterruptKind::Uncertain => self.uncertain_outcome(progress, open, &answer)?,
            InterruptKind::Stale if answer.value == "cancel" => Outcome::Cancelled,
            InterruptKind::Stale => Outcome::Resumed,
        };
        let (interrupt, request) = (open.interrupt.clone(), request.to_owned());
        let event = Event::InterruptAnswered { interrupt, answer, request, outcome };
        progress.apply(&event).expect("the question is open");
        Ok(event)
    }

    fn gate_outcome(&self, open: &Interrupt, answer: &Answer) -> Outcome {
        let node = open.task.as_ref().and_then(|task| self.graph.node(&task.node));
        let rejection = node.and_then(crate::Node::gate).and_then(crate::Gate::rejection);
        match rejection {
            Some(target) if answer.is_rejection() => Outcome::Rerouted(target.to_owned()),
            Some(_) | None => Outcome::Answered,
        }
    }

    fn uncertain_outcome(
        &self,
        progress: &Progress,
        open: &Interrupt,
        answer: &Answer,
    ) -> Result<Outcome, crate::Refusal> {
        let result = answer.value.get("result");
        let word = answer.value.as_str().unwrap_or_default();
        match (&open.key, &open.task) {
            _ if word == "retry" => Ok(Outcome::Retry),
            _ if word == "fail" => Ok(Outcome::Failed(Failure {
                code: "uncertain".to_owned(),
                message: format!("{} said that the uncertain effect failed", answer.by),
            })),
            (Some(key), _) => {
                let value = result.cloned().unwrap_or_default();
                Ok(Outcome::StepDone { key: key.clone(), value })
            }
            (None, Some(task)) => self.uncertain_node(progress, task, result),
            (None, None) => Ok(Outcome::Retry),
        }
    }

    /// The uncertain node counts as done: `result` is what it would have returned.
    fn uncertain_node(
        &self,
        progress: &Progress,
        task: &TaskRef,
        result: Option<&serde_json::Value>,
    ) -> Result<Outcome, crate::Refusal> {
        let no = |why: String| crate::Refusal::new(crate::Code::Schema, "answer.result", why);
        let update = match result {
            None => Update::new(),
            Some(value) => value
                .as_object()
                .ok_or_else(|| no("is no object of state keys".to_owned()))?
                .iter()
                .fold(Update::new(), |update, (key, value)| update.set(key, value)),
        };
        let mut copy = progress.clone();
        let done = self.done(&mut copy, task, update).map_err(|fault| no(fault.to_string()))?;
        Ok(Outcome::Completed { patches: done.patches, next: done.next })
    }

    /// Answers the questions whose deadline has passed with their default, which is the author's
    /// own and taken as it is.
    pub fn expire(&self, progress: &mut Progress, now_ms: i64) -> Vec<Event> {
        let due = |open: &&Interrupt| open.deadline_ms.is_some_and(|at| at <= now_ms);
        let due: Vec<Interrupt> = progress.open().filter(due).cloned().collect();
        let answer = |open: Interrupt| {
            let value = open.default_answer.clone().unwrap_or_default();
            let answer = Answer { value, by: "deadline".to_owned(), at_ms: now_ms, comment: None };
            self.take(progress, &open, answer, "deadline").ok()
        };
        due.into_iter().filter_map(answer).collect()
    }
}
