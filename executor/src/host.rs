//! The ports of one attempt: what a node does through its context goes to the run loop as a
//! command, since only the loop writes to the store.

use std::{
    collections::BTreeSet,
    fmt,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use holdpoint_graph::{
    Answer, BoxFuture, Call, Effect, Host, InterruptId, NodeError, Question, StepStart, TaskRef,
};
use serde_json::Value;
use tokio::sync::{mpsc, oneshot};

use crate::{Control, time::StoreTime};

/// What a node asks of its run loop.
pub(crate) enum Command {
    /// An unsafe step is about to begin.
    StepBegins { task: TaskRef, key: String, done: oneshot::Sender<()> },
    /// A step ended.
    StepEnds { task: TaskRef, key: String, value: Value, done: oneshot::Sender<()> },
    /// A question; the attempt is over.
    Ask { task: TaskRef, key: String, question: Box<Question> },
    /// A long sleep; the attempt is over.
    Sleep { task: TaskRef, until_ms: i64 },
    /// A partial result.
    Emit { task: TaskRef, value: Value },
}

impl fmt::Debug for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::StepBegins { .. } => "StepBegins",
            Self::StepEnds { .. } => "StepEnds",
            Self::Ask { .. } => "Ask",
            Self::Sleep { .. } => "Sleep",
            Self::Emit { .. } => "Emit",
        };
        f.write_str(name)
    }
}

/// The ports of one attempt.
pub(crate) struct AttemptHost {
    task: TaskRef,
    recorded: Vec<Call>,
    seen: Mutex<Seen>,
    commands: mpsc::Sender<Box<Command>>,
    control: Control,
    time: Arc<StoreTime>,
    sleep_in_place: Duration,
}

/// What this attempt has called so far.
#[derive(Default)]
struct Seen {
    keys: BTreeSet<String>,
    asks: usize,
}

impl AttemptHost {
    pub(crate) fn new(
        task: TaskRef,
        recorded: Vec<Call>,
        commands: mpsc::Sender<Box<Command>>,
        control: Control,
        (time, sleep_in_place): (Arc<StoreTime>, Duration),
    ) -> Self {
        let seen = Mutex::default();
        Self { task, recorded, seen, commands, control, time, sleep_in_place }
    }

    /// Fails when the attempt did not ask again what is recorded.
    pub(crate) fn check_replayed(&self) -> Result<(), NodeError> {
        let asked = self.seen.lock().unwrap_or_else(PoisonError::into_inner).asks;
        match self.asks().nth(asked) {
            None => Ok(()),
            Some((key, ..)) => Err(other_order(&format!("it ended without its ask {key:?}"))),
        }
    }

    fn asks(&self) -> impl Iterator<Item = (&String, &InterruptId, &Option<Answer>)> {
        self.recorded.iter().filter_map(|call| match call {
            Call::Ask { key, interrupt, answer } => Some((key, interrupt, answer)),
            Call::Step { .. } => None,
        })
    }

    fn once(&self, key: &str) -> Result<(), NodeError> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.keys.insert(key.to_owned()) {
            return Ok(());
        }
        Err(NodeError::permanent(format!("the key {key:?} is used twice in one node")))
    }

    /// Sends a command and waits until the loop has done it. A loop that is gone never answers:
    /// the attempt is being dropped.
    async fn done(&self, command: impl FnOnce(oneshot::Sender<()>) -> Command) {
        let (done, is_done) = oneshot::channel();
        let sent = self.commands.send(Box::new(command(done))).await;
        if sent.is_err() || is_done.await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

fn other_order(what: &str) -> NodeError {
    let text = format!("the node asks otherwise than it did before: {what}");
    NodeError::permanent(text).with_code("NonDeterministicNode")
}

impl Host for AttemptHost {
    fn step_begin<'a>(
        &'a self,
        key: &'a str,
        effect: Effect,
    ) -> BoxFuture<'a, Result<StepStart, NodeError>> {
        Box::pin(async move {
            self.once(key)?;
            let recorded = self.recorded.iter().find_map(|call| match call {
                Call::Step { key: known, value } if known == key => Some(value.clone()),
                Call::Step { .. } | Call::Ask { .. } => None,
            });
            if let Some(value) = recorded {
                return Ok(StepStart::Recorded(value));
            }
            if effect == Effect::Unsafe {
                let (task, key) = (self.task.clone(), key.to_owned());
                self.done(|done| Command::StepBegins { task, key, done }).await;
            }
            Ok(StepStart::Run)
        })
    }

    fn step_end<'a>(&'a self, key: &'a str, value: Value) -> BoxFuture<'a, Result<(), NodeError>> {
        Box::pin(async move {
            let (task, key) = (self.task.clone(), key.to_owned());
            self.done(|done| Command::StepEnds { task, key, value, done }).await;
            Ok(())
        })
    }

    fn ask<'a>(
        &'a self,
        key: &'a str,
        question: Question,
    ) -> BoxFuture<'a, Result<Answer, NodeError>> {
        Box::pin(async move {
            let index = {
                let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
                seen.asks += 1;
                seen.asks - 1
            };
            match self.asks().nth(index) {
                Some((known, _, Some(answer))) if known == key => return Ok(answer.clone()),
                Some((known, _, None)) if known == key => {}
                Some((known, ..)) => {
                    return Err(other_order(&format!("{key:?} where it asked {known:?}")));
                }
                None if self.asks().any(|(known, ..)| known == key) => {
                    return Err(NodeError::permanent(format!("it asks {key:?} twice")));
                }
                None => {
                    let (task, key) = (self.task.clone(), key.to_owned());
                    let question = Box::new(question);
                    // A closed channel means that the attempt is being dropped.
                    let ask = Command::Ask { task, key, question };
                    let _ = self.commands.send(Box::new(ask)).await;
                }
            }
            std::future::pending().await
        })
    }

    fn sleep_until<'a>(&'a self, at_ms: i64) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let left_ms = u64::try_from(at_ms - self.time.now_ms()).unwrap_or(0);
            let left = Duration::from_millis(left_ms);
            if left <= self.sleep_in_place {
                tokio::time::sleep(left).await;
                return;
            }
            let task = self.task.clone();
            let sleep = Command::Sleep { task, until_ms: at_ms };
            let _ = self.commands.send(Box::new(sleep)).await;
            std::future::pending().await
        })
    }

    fn emit(&self, value: Value) {
        // A full channel drops the partial: a node never waits for whoever watches.
        let emit = Command::Emit { task: self.task.clone(), value };
        let _ = self.commands.try_send(Box::new(emit));
    }

    fn cancelled<'a>(&'a self) -> BoxFuture<'a, ()> {
        Box::pin(self.control.stopped())
    }

    fn is_cancelled(&self) -> bool {
        self.control.is_stopping()
    }

    fn now_ms(&self) -> i64 {
        self.time.now_ms()
    }
}
