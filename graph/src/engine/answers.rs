//! Answers to open questions, and what they do.

use super::Engine;
use crate::DEADLINE;
use crate::{
    Answer, Code, Event, Failure, Interrupt, InterruptId, InterruptKind, Outcome, Progress, Reason,
    ReasonCode, Refusal, Resource, TaskRef, Update, budget::raised_by,
};

/// Why an answer cannot be taken.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AnswerFault {
    /// The question is not open.
    #[error("the question {0} is not open")]
    NotOpen(InterruptId),
    /// The answer does not fit the question.
    #[error(transparent)]
    Unfit(#[from] Refusal),
}

impl Engine {
    /// Takes the answer to an open question, or counts it as a vote when that needs more.
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
        open.check(&answer)?;
        let open = open.clone();
        if open.decides(&answer) {
            return self.take(progress, &open, answer, request);
        }
        let vote = Answer { args_hash: Some(open.args_hash), ..answer };
        let event = Event::VoteCast { interrupt: id.clone(), vote, request: request.to_owned() };
        progress.apply(&event).expect("the question is open");
        Ok(event)
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
            InterruptKind::Gate => self.gate_outcome(progress, open, &answer)?,
            InterruptKind::Ask => Outcome::Answered,
            InterruptKind::Budget => budget_outcome(open, &answer)?,
            InterruptKind::Uncertain => self.uncertain_outcome(progress, open, &answer)?,
            InterruptKind::Stale if answer.value == "cancel" => Outcome::Cancelled,
            InterruptKind::Stale => Outcome::Resumed,
        };
        let answer = Answer { args_hash: Some(open.args_hash.clone()), ..answer };
        let (interrupt, request) = (open.interrupt.clone(), request.to_owned());
        let event = Event::InterruptAnswered { interrupt, answer, request, outcome };
        progress.apply(&event).expect("the question is open");
        Ok(event)
    }

    fn gate_outcome(
        &self,
        progress: &Progress,
        open: &Interrupt,
        answer: &Answer,
    ) -> Result<Outcome, Refusal> {
        let node = open.task.as_ref().and_then(|task| self.graph.node(&task.node));
        let gate = node.and_then(crate::Node::gate);
        let choice = answer.choice().unwrap_or_default();
        if let Some(target) = gate.and_then(|gate| gate.target(choice)) {
            return Ok(Outcome::Rerouted(target.to_owned()));
        }
        let patches = open.edit(progress, answer)?;
        Ok(if patches.is_empty() { Outcome::Answered } else { Outcome::Edited(patches) })
    }

    fn uncertain_outcome(
        &self,
        progress: &Progress,
        open: &Interrupt,
        answer: &Answer,
    ) -> Result<Outcome, Refusal> {
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
    ) -> Result<Outcome, Refusal> {
        let no = |why: String| Refusal::new(Code::Schema, "answer.result", why);
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

    /// Answers a question whose deadline has passed with its default, which is the author's own
    /// and taken as it is. None when it is not open or has time left.
    pub fn expire(&self, progress: &mut Progress, id: &InterruptId, now_ms: i64) -> Option<Event> {
        let open = progress.question(id).filter(|open| open.is_overdue(now_ms))?.clone();
        let value = open.default_answer.clone().unwrap_or_default();
        self.take(progress, &open, Answer::new(value, DEADLINE, now_ms), DEADLINE).ok()
    }

    /// The reminders whose time has come; of several that came while nobody looked each is told.
    ///
    /// # Panics
    /// Never: the events are made of the progress they are applied to.
    pub fn remind(&self, progress: &mut Progress, now_ms: i64) -> Vec<Event> {
        let of_one = |open: &Interrupt| -> Vec<Event> {
            let due = open.reminders.iter().take_while(|reminder| reminder.at_ms <= now_ms);
            due.map(|reminder| Event::InterruptReminded {
                interrupt: open.interrupt.clone(),
                also: reminder.also.clone(),
            })
            .collect()
        };
        let events: Vec<Event> = progress.open().flat_map(of_one).collect();
        for event in &events {
            progress.apply(event).expect("the question is open and has the reminder");
        }
        events
    }
}

fn budget_outcome(open: &Interrupt, answer: &Answer) -> Result<Outcome, Refusal> {
    let resource = open.key.as_deref().and_then(Resource::from_word);
    let resource = resource.ok_or_else(|| {
        let key = open.key.as_deref().unwrap_or("nothing");
        Refusal::new(Code::Schema, "interrupt", format!("is about {key}, which has no budget"))
    })?;
    if let Some(by) = raised_by(&answer.value, resource) {
        return Ok(Outcome::Raised { resource, by });
    }
    let by = crate::printable(&answer.by, 80);
    let message = format!("the budget of {} is used up, and {by} ended the run", resource.as_str());
    Ok(Outcome::Stopped(Reason { code: ReasonCode::BudgetExceeded, message, node: None }))
}
