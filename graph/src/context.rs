//! What a node gets besides the state: who it is, and its ports to the world.
//!
//! The type belongs to `graph`, so that graphs can hold node functions; the ports behind it are a
//! small trait that `executor` implements for each attempt of a task.

use std::{fmt, future::Future, sync::Arc, time::Duration};

use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{
    Answer, BoxFuture, Effect, GraphId, NodeError, Question, RunId, SessionId, fingerprint, strict,
};

/// Which attempt of which task of which run this is.
#[derive(Debug, Clone)]
pub struct TaskInfo {
    /// The run.
    pub run: RunId,
    /// The session, when the run has a named one.
    pub session: Option<SessionId>,
    /// The graph.
    pub graph: GraphId,
    /// The node's id.
    pub node: String,
    /// How often the run has come to this node, from 1.
    pub visit: u32,
    /// The attempt of this task, from 1. A lost worker does not count.
    pub attempt: u32,
    /// Where the task stands in the run's forks: the index of the branch at each level.
    pub branch: Vec<u32>,
    /// The fencing epoch of the lease; hand it to outside systems that can compare it.
    pub epoch: u64,
    /// The nonce of the lease: with the epoch it names one claim, also where a store that lost its
    /// newest writes gives an epoch out again.
    pub nonce: String,
    /// The answer of the node's gate.
    pub answer: Option<Answer>,
}

/// Whether a memoised step has run before.
#[derive(Debug)]
pub enum StepStart {
    /// It ended before, with this value.
    Recorded(Value),
    /// It has no result yet.
    Run,
}

/// The ports of a node: what [`NodeContext`] does is done by one of these.
pub trait Host: Send + Sync {
    /// Begins the step `key`; an unsafe one is recorded as begun before this returns.
    fn step_begin<'a>(
        &'a self,
        key: &'a str,
        effect: Effect,
    ) -> BoxFuture<'a, Result<StepStart, NodeError>>;
    /// Records the step's value; it is durable when this returns.
    fn step_end<'a>(&'a self, key: &'a str, value: Value) -> BoxFuture<'a, Result<(), NodeError>>;
    /// Asks a question. Does not return before it is answered: the run parks meanwhile and the
    /// future is dropped.
    fn ask<'a>(
        &'a self,
        key: &'a str,
        question: Question,
    ) -> BoxFuture<'a, Result<Answer, NodeError>>;
    /// Waits until a time of the store's clock; a long wait parks the run and drops the future.
    fn sleep_until<'a>(&'a self, at_ms: i64) -> BoxFuture<'a, ()>;
    /// Sends a partial result to whoever follows the run. Never waits; may be dropped.
    fn emit(&self, value: Value);
    /// Returns when the run is to be cancelled or its worker loses the lease.
    fn cancelled<'a>(&'a self) -> BoxFuture<'a, ()>;
    /// Whether [`Host::cancelled`] has returned.
    fn is_cancelled(&self) -> bool;
    /// The store's time, in ms since 1970.
    fn now_ms(&self) -> i64;
}

/// A node's view of its run. Cheap to clone.
#[derive(Clone)]
pub struct NodeContext {
    info: Arc<TaskInfo>,
    host: Arc<dyn Host>,
}

impl NodeContext {
    /// A context over the ports of one attempt.
    #[must_use]
    pub fn new(info: TaskInfo, host: Arc<dyn Host>) -> Self {
        Self { info: Arc::new(info), host }
    }

    /// The run.
    #[must_use]
    pub fn run(&self) -> &RunId {
        &self.info.run
    }

    /// The session; a run without a named one is its own.
    #[must_use]
    pub fn session(&self) -> &str {
        self.info.session.as_ref().map_or(self.info.run.as_str(), SessionId::as_str)
    }

    /// The graph.
    #[must_use]
    pub fn graph(&self) -> &GraphId {
        &self.info.graph
    }

    /// The node's id.
    #[must_use]
    pub fn node(&self) -> &str {
        &self.info.node
    }

    /// How often the run has come to this node, from 1.
    #[must_use]
    pub fn visit(&self) -> u32 {
        self.info.visit
    }

    /// The attempt of this task, from 1.
    #[must_use]
    pub fn attempt(&self) -> u32 {
        self.info.attempt
    }

    /// The index of the branch at each level of fork, outermost first.
    #[must_use]
    pub fn branch(&self) -> &[u32] {
        &self.info.branch
    }

    /// The fencing epoch of the worker's lease.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.info.epoch
    }

    /// The nonce of the worker's lease. Epochs only order claims; after a store has lost its newest
    /// writes two claims may have the same epoch, and never the same nonce.
    #[must_use]
    pub fn nonce(&self) -> &str {
        &self.info.nonce
    }

    /// A key that is the same for every attempt of this task and for no other task.
    #[must_use]
    pub fn idempotency_key(&self) -> String {
        let TaskInfo { run, node, visit, .. } = &*self.info;
        fingerprint::of_parts(&["task", run.as_str(), node, &visit.to_string()])
    }

    /// The answer of the node's gate.
    #[must_use]
    pub fn answer(&self) -> Option<&Answer> {
        self.info.answer.as_ref()
    }

    /// Runs `work` once over all attempts: its value is recorded, and later attempts get that.
    ///
    /// The key is unique within the node. Cancel-safe: a step that is dropped has no result and
    /// runs again.
    ///
    /// # Errors
    /// What `work` returns, and a failure to record the value.
    pub async fn step<T, F, Fut>(&self, key: &str, work: F) -> Result<T, NodeError>
    where
        T: Serialize + DeserializeOwned,
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, NodeError>>,
    {
        self.step_with(key, Effect::Idempotent, work).await
    }

    /// [`NodeContext::step`] with an effect class. An unsafe step that began and did not end
    /// parks the run with an `uncertain` interrupt when it is reached again.
    ///
    /// # Errors
    /// As [`NodeContext::step`].
    pub async fn step_with<T, F, Fut>(
        &self,
        key: &str,
        effect: Effect,
        work: F,
    ) -> Result<T, NodeError>
    where
        T: Serialize + DeserializeOwned,
        F: FnOnce() -> Fut,
        Fut: Future<Output = Result<T, NodeError>>,
    {
        let value = match self.host.step_begin(key, effect).await? {
            StepStart::Recorded(value) => value,
            StepStart::Run => {
                let value = strict::to_value(&work().await?).map_err(|fault| {
                    let text = format!("the value of step {key:?}{fault}");
                    NodeError::permanent(text).with_code(fault.code().as_str())
                })?;
                self.host.step_end(key, value.clone()).await?;
                value
            }
        };
        serde_json::from_value(value).map_err(|fault| {
            NodeError::permanent(format!(
                "the recorded value of step {key:?} has another type: {fault}"
            ))
        })
    }

    /// Asks a person. The run parks, and the node starts again from its top when the answer is
    /// there; answered asks then return at once, in the same order.
    ///
    /// # Errors
    /// `NonDeterministicNode` when the node asks in another order than it did before.
    pub async fn ask(&self, key: &str, question: Question) -> Result<Answer, NodeError> {
        self.host.ask(key, question).await
    }

    /// Waits; the time of the end is recorded, so that a restart does not wait anew. A wait over
    /// a few seconds holds no worker.
    ///
    /// # Errors
    /// A failure to record the time.
    pub async fn sleep(&self, key: &str, wait: Duration) -> Result<(), NodeError> {
        let until = || async {
            let wait_ms = i64::try_from(wait.as_millis()).unwrap_or(i64::MAX);
            Ok(self.host.now_ms().saturating_add(wait_ms))
        };
        let at_ms = self.step_with(key, Effect::Pure, until).await?;
        self.host.sleep_until(at_ms).await;
        Ok(())
    }

    /// The store's time in ms since 1970, recorded under `key`: the same in every attempt.
    ///
    /// # Errors
    /// A failure to record the time.
    pub async fn time(&self, key: &str) -> Result<i64, NodeError> {
        self.step_with(key, Effect::Pure, || async { Ok(self.host.now_ms()) }).await
    }

    /// Sends a partial result to whoever follows the run; never waits.
    pub fn emit(&self, value: impl Serialize) {
        if let Ok(value) = strict::to_value(&value) {
            self.host.emit(value);
        }
    }

    /// Returns when the node should stop: the run is cancelled, or the worker lost its lease.
    pub async fn cancelled(&self) {
        self.host.cancelled().await;
    }

    /// Whether the node should stop.
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.host.is_cancelled()
    }
}

impl fmt::Debug for NodeContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NodeContext").field("info", &self.info).finish_non_exhaustive()
    }
}
