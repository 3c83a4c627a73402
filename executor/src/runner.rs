//! Runs one run in this process: enqueue, claim and execute, without a worker.

mod keep;
mod state;

use std::{sync::Arc, time::Duration};

use holdpoint_graph::{
    CheckpointStart, CompiledGraph, InterruptId, Origin, Patch, QueueId, Refusal, RunId,
    RunPayload, RunStatus, SessionId, State,
    limits::{PRIORITY_DEFAULT, QUEUE_DEPTH_MAX},
};
use holdpoint_storage::{
    Address, ClaimRequest, Enqueued, IfBusy, Lane, NewRun, Random, RunHead, SharedClock,
    SignalRecord, SignalReply, SignalRequest, Store, SystemClock, When, meaning_hash,
};
use serde_json::{Value, json};

use self::keep::keep_lease;
pub use self::state::{RunState, RunnerError};
use crate::{
    Claimed, Control, EventSink, ExecutorConfig, Outcome, QueuedExecutor, RunStream,
    SingleGraphResolver, Tracer, journal::load, stream::StreamSink, time::StoreTime,
};

/// Executes one graph over a store, in this process. Each call uses the runner up.
///
/// There is no run without a journal; for throw-away runs use an in-memory SQLite store.
pub struct Runner {
    graph: CompiledGraph,
    store: Arc<dyn Store>,
    config: ExecutorConfig,
    sinks: Vec<Arc<dyn EventSink>>,
    tracer: Option<Arc<dyn Tracer>>,
    streams: StreamSink,
    clock: SharedClock,
}

impl std::fmt::Debug for Runner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runner").field("graph", &self.graph).finish_non_exhaustive()
    }
}

impl Runner {
    /// A runner of `graph` over `store`.
    #[must_use]
    pub fn new(graph: CompiledGraph, store: Arc<dyn Store>) -> Self {
        let streams = StreamSink::new();
        let clock: SharedClock = Arc::new(SystemClock);
        let config = ExecutorConfig::default();
        Self { graph, store, config, sinks: Vec::new(), tracer: None, streams, clock }
    }

    /// A step limit for the run's whole life.
    #[must_use]
    pub const fn with_max_steps(mut self, max_steps: u64) -> Self {
        self.config.max_steps = max_steps;
        self
    }

    /// A time limit for each attempt of a node.
    #[must_use]
    pub const fn with_node_timeout(mut self, timeout: Duration) -> Self {
        self.config.node_timeout = timeout;
        self
    }

    /// A sink that hears of committed records.
    #[must_use]
    pub fn with_broker(mut self, sink: Arc<dyn EventSink>) -> Self {
        self.sinks.push(sink);
        self
    }

    /// A tracer.
    #[must_use]
    pub fn with_tracer(mut self, tracer: Arc<dyn Tracer>) -> Self {
        self.tracer = Some(tracer);
        self
    }

    /// A reader of the run's events; it ends with the call that runs.
    #[must_use]
    pub fn stream(&self) -> RunStream {
        self.streams.stream()
    }

    /// Starts a run in a session and executes it until it ends, parks or waits for a time.
    ///
    /// # Errors
    /// A failure of the store, or [`RunnerError::Busy`].
    pub async fn run(self, session: SessionId, initial: State) -> Result<RunState, RunnerError> {
        self.begin(Some(session), RunPayload::new(initial)).await
    }

    /// Goes on with the session's unfinished run. A run that waits for an answer stays where it
    /// is; a finished one is returned as it ended.
    ///
    /// # Errors
    /// [`RunnerError::NoCheckpoint`] when the session has no run.
    pub async fn resume(self, session: SessionId) -> Result<RunState, RunnerError> {
        let run = self.unfinished(&session).await?;
        self.go_on(run).await
    }

    /// Answers a question of the session's run and goes on with it. When the question needs
    /// several people, the answer is a vote.
    ///
    /// # Errors
    /// As [`Runner::resume`]; [`RunnerError::Refused`] when the answer does not fit the question,
    /// and [`RunnerError::NotAnswered`].
    pub async fn resume_with(
        self,
        session: SessionId,
        interrupt: InterruptId,
        answer: Value,
        by: &str,
    ) -> Result<RunState, RunnerError> {
        let run = self.unfinished(&session).await?;
        let request = Random.request_id();
        let record = SignalRecord {
            answer,
            by: by.to_owned(),
            at_ms: self.store.now_ms().await?,
            comment: None,
            groups: Vec::new(),
            from: Some("runner".to_owned()),
            request: request.to_string(),
        };
        let (progress, given) = (self.progress(&run).await?, record.to_answer());
        let mut ballot = None;
        if let Some(asked) = progress.question(&interrupt) {
            asked.check(&given)?;
            asked.edit(&progress, &given)?;
            ballot = asked.ballot(&given);
        }
        let request = SignalRequest {
            run: run.clone(),
            request,
            address: Address::Interrupt(interrupt),
            args_hash: None,
            ballot,
            record: record.encode(),
        };
        match self.store.signal(&request).await? {
            SignalReply::Delivered { .. } => self.go_on(run).await,
            other => Err(RunnerError::NotAnswered(other)),
        }
    }

    /// Goes on from a checkpoint: the newest one of an unfinished run is a resume, any other one
    /// begins a new run of the session there. A written journal never changes.
    ///
    /// # Errors
    /// As [`Runner::resume`].
    pub async fn resume_from_checkpoint(
        self,
        run: RunId,
        seq: u64,
    ) -> Result<RunState, RunnerError> {
        let head = self.head(&run).await?;
        if !head.status().is_terminal() && head.seq == seq {
            return self.go_on(run).await;
        }
        let session = head.session.clone();
        let payload = self.checkpoint(&run, seq, true, vec![]).await?;
        self.begin(session, payload).await
    }

    /// Runs again from a checkpoint, in a session of its own. Gates after it ask again.
    ///
    /// # Errors
    /// A failure of the store, or a run that does not exist.
    pub async fn replay_from(self, run: RunId, seq: u64) -> Result<RunState, RunnerError> {
        let payload = self.checkpoint(&run, seq, true, vec![]).await?;
        self.begin(None, payload).await
    }

    /// Runs from a checkpoint with an update that goes through the reducers, in a session of its
    /// own; the original is untouched.
    ///
    /// # Errors
    /// As [`Runner::replay_from`].
    pub async fn fork_from(
        self,
        run: RunId,
        seq: u64,
        update: State,
    ) -> Result<RunState, RunnerError> {
        let mut payload = self.checkpoint(&run, seq, false, vec![]).await?;
        if let Some(start) = &mut payload.checkpoint {
            start.patches = self.graph.schema().patches(start.progress.state(), update);
        }
        self.begin(None, payload).await
    }

    async fn head(&self, run: &RunId) -> Result<RunHead, RunnerError> {
        let head = self.store.head(run).await?;
        head.ok_or_else(|| {
            let message = format!("{run} does not exist");
            Refusal::new(holdpoint_graph::Code::NotFound, "run", message).into()
        })
    }

    async fn unfinished(&self, session: &SessionId) -> Result<RunId, RunnerError> {
        let run = match self.store.session(session).await? {
            Some(record) => record.active.or(record.last),
            // A run without a session is its own: forks and replays are.
            None => {
                let head = self.store.head(&RunId::new(session.as_str())?).await?;
                head.filter(|head| head.session.is_none()).map(|head| head.run)
            }
        };
        run.ok_or_else(|| RunnerError::NoCheckpoint(session.clone()))
    }

    /// The payload of a run that begins at another's checkpoint.
    async fn checkpoint(
        &self,
        run: &RunId,
        seq: u64,
        is_replay: bool,
        patches: Vec<Patch>,
    ) -> Result<RunPayload, RunnerError> {
        let max = usize::try_from(seq).unwrap_or(usize::MAX);
        let part = self.store.journal(run, 0, max).await?;
        let records = part.map(|part| part.records).unwrap_or_default();
        let loaded = load(self.store.namespace(), run, None, &records)?;
        if loaded.progress.seq() != seq || !loaded.progress.is_begun() {
            let message = format!("{seq} is no checkpoint of run {run}");
            return Err(Refusal::new(holdpoint_graph::Code::NoCheckpoint, "seq", message).into());
        }
        let origin = Origin { run: run.clone(), seq, is_replay };
        let progress = Box::new(loaded.progress);
        Ok(RunPayload {
            checkpoint: Some(CheckpointStart { origin, progress, patches }),
            ..RunPayload::new(State::new())
        })
    }

    async fn begin(
        self,
        session: Option<SessionId>,
        payload: RunPayload,
    ) -> Result<RunState, RunnerError> {
        let now_ms = self.store.now_ms().await?;
        let run = Random.run_id(now_ms);
        let meaning = json!([self.graph.id(), session, payload]);
        let new = NewRun {
            run: run.clone(),
            request: Random.request_id(),
            graph: self.graph.id().clone(),
            fingerprint: payload.checkpoint.as_ref().map(|_| self.graph.fingerprint().clone()),
            // A queue of its own: no worker takes the run from under the runner.
            queue: QueueId::new(format!("runner-{run}"))?,
            session,
            if_busy: IfBusy::Reject,
            payload: payload.encode(),
            payload_hash: meaning_hash(&meaning),
            priority: PRIORITY_DEFAULT,
            start: When::In(0),
            expires: None,
            deadline: None,
            key: None,
            tags: Vec::new(),
            queue_depth_max: QUEUE_DEPTH_MAX,
        };
        let reply = self.store.enqueue(&[new], false).await?;
        match reply.items.into_iter().next() {
            Some(Enqueued::SessionBusy { run, .. }) => Err(RunnerError::Busy(run)),
            Some(Enqueued::SessionGraph { graph }) => {
                let message = format!("belongs to graph {graph}");
                let code = holdpoint_graph::Code::SessionGraph;
                Err(Refusal::new(code, "session", message).into())
            }
            _ => self.go_on(run).await,
        }
    }

    /// Claims the run, if it can be, and executes it.
    async fn go_on(self, run: RunId) -> Result<RunState, RunnerError> {
        let head = self.head(&run).await?;
        if head.status() == RunStatus::Queued {
            self.execute(&head).await?;
        }
        self.state(&run).await
    }

    async fn execute(&self, head: &RunHead) -> Result<(), RunnerError> {
        let worker = Random.worker_id("runner", std::process::id());
        let fingerprint = self.graph.fingerprint().clone();
        let lane = |fingerprint| Lane {
            queue: head.queue.clone(),
            graph: self.graph.id().clone(),
            fingerprint,
        };
        let request = ClaimRequest {
            worker: worker.clone(),
            nonce: Random.nonce(),
            lanes: vec![lane(None), lane(Some(fingerprint))],
            max: 1,
            lease_ms: self.config.lease_ms(),
            oldest_first: false,
            bytes_max: usize::MAX / 2,
        };
        let sent = self.clock.monotonic();
        let claims = self.store.claim(&request).await?;
        let now_ms = claims.now_ms;
        let Some(claimed) = claims.runs.into_iter().next() else { return Ok(()) };
        let control = Control::new(sent + self.config.hold());
        let time = Arc::new(StoreTime::new(Arc::clone(&self.clock), now_ms));
        let lease = claimed.lease.clone();
        let executor = self.executor();
        // On the heap: it would be a large part of the future of everybody who runs something.
        let work =
            Box::pin(executor.execute(Claimed { run: claimed, control: control.clone(), time }));
        let keep = keep_lease(Arc::clone(&self.store), lease, control, self.config, &self.clock);
        let outcome = tokio::select! {
            outcome = work => outcome,
            () = keep => Outcome::Fenced,
        };
        match outcome {
            Outcome::Fenced | Outcome::GivenUp => Err(RunnerError::NotOurs(outcome)),
            Outcome::Completed
            | Outcome::Failed(_)
            | Outcome::Cancelled
            | Outcome::Parked
            | Outcome::Rescheduled { .. }
            | Outcome::Released => Ok(()),
        }
    }

    fn executor(&self) -> QueuedExecutor {
        let resolver = Arc::new(SingleGraphResolver(self.graph.clone()));
        let mut executor = QueuedExecutor::new(Arc::clone(&self.store), resolver)
            .with_config(self.config)
            .with_broker(Arc::new(self.streams.clone()));
        for sink in &self.sinks {
            executor = executor.with_broker(Arc::clone(sink));
        }
        match &self.tracer {
            Some(tracer) => executor.with_tracer(Arc::clone(tracer)),
            None => executor,
        }
    }
}
