//! One call of the load, with its lines: invoke before it, and what came of it after.

use holdpoint_graph::RunId;
use holdpoint_producer::{ProducerError, Receipt, RunRequest, SignalOptions};
use holdpoint_torture_check::{Line, Op, Phase};
use serde_json::{Value, json};

use super::Desk;

/// What came of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Came {
    /// It was done.
    Ok,
    /// It was refused, with this code.
    Refused(&'static str),
    /// Nobody knows.
    Unknown,
}

/// An answer to send.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    /// The id of the call.
    pub(super) id: String,
    /// The run.
    pub(super) run: String,
    /// The gate, or the interrupt.
    pub(super) question: Question,
    /// The answer.
    pub(super) value: Value,
    /// The hash of the arguments that the person saw, when it is to be compared.
    pub(super) args_hash: Option<&'static str>,
    /// Whether it must be refused: the interrupt, or what was asked, is another.
    pub(super) is_foreign: bool,
}

/// Whom an answer is for.
#[derive(Debug, Clone)]
pub(super) enum Question {
    /// The gate of this name.
    Gate(&'static str),
    /// This opening.
    Interrupt(String),
}

impl Desk {
    /// Enqueues a run.
    pub(super) async fn enqueue(&self, run: &str, request: &RunRequest) -> Came {
        self.write(Line::now(Op::Enqueue, Phase::Invoke, run));
        let reply = self.producer.enqueue(request).await;
        let is_ours = |receipt: &Receipt| receipt.run.as_str() == run;
        let detail = match &reply {
            Ok(receipt) if !is_ours(receipt) => json!({ "named": receipt.run.as_str() }),
            Ok(receipt) => json!({ "created": receipt.created }),
            Err(error) => json!({ "error": error.to_string() }),
        };
        self.ended(Line::now(Op::Enqueue, Phase::Ok, run).detail(detail), reply.err())
    }

    /// Sends an answer.
    pub(super) async fn signal(&self, answer: &Answer) -> Came {
        let options = SignalOptions::run(answer.run.as_str());
        let (options, question) = match &answer.question {
            Question::Gate(gate) => (options.gate(*gate), *gate),
            Question::Interrupt(interrupt) => (options.interrupt(interrupt), interrupt.as_str()),
        };
        let options = options.answer(answer.value.clone()).by("torture").key(answer.id.as_str());
        let options = match answer.args_hash {
            Some(hash) => options.args_hash(hash),
            None => options,
        };
        let line = |phase| {
            let line = Line::now(Op::Signal, phase, answer.id.as_str()).run(answer.run.as_str());
            let mut line = line.detail(json!({ "foreign": answer.is_foreign }));
            line.node = Some(question.to_owned());
            line
        };
        self.write(line(Phase::Invoke));
        let reply = self.producer.signal(&options).await;
        self.ended(line(Phase::Ok), reply.err())
    }

    /// Cancels a run.
    pub(super) async fn cancel(&self, id: &str, run: &RunId) -> Came {
        let line = |phase| Line::now(Op::Cancel, phase, id).run(run.as_str());
        self.write(line(Phase::Invoke));
        let reply = self.producer.cancel(run, "torture").await;
        self.ended(line(Phase::Ok), reply.err())
    }

    fn ended(&self, line: Line, error: Option<ProducerError>) -> Came {
        let (phase, came) = match &error {
            None => (Phase::Ok, Came::Ok),
            Some(ProducerError::UnknownOutcome { .. }) => (Phase::Unknown, Came::Unknown),
            Some(error) => (Phase::Fail, Came::Refused(error.code().as_str())),
        };
        let line = Line { phase, ..line };
        self.write(match &error {
            None => line,
            Some(error) => line.code(error.code().as_str()),
        });
        came
    }

    fn write(&self, line: Line) {
        self.recorder.write(line).expect("the history can be written, or the run proves nothing");
    }
}
