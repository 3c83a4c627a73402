//! What a caller asks for: one run, with everything that can be said about it.
//!
//! A request takes raw values and refuses none; [`RunRequest::check`] refuses, before anything is
//! stored. So a library call, a command line and a batch line get the same codes.

use std::{collections::BTreeMap, time::Duration};

use holdpoint_graph::{
    Budget, Code, GraphId, KeyId, Memory, OnStale, QueueId, Refusal, RequestId, RunId, RunPayload,
    SessionId, State, limits,
};
use holdpoint_storage::{IfBusy, NewRun, Random, When, meaning_hash};
use serde_json::{Value, json};

use crate::check::{
    budget_steps, budget_time, end_is_ahead, input, is_near, millis, priority, stale_after, steps,
    tags,
};

/// A run to enqueue.
///
/// ```
/// use std::time::Duration;
/// use holdpoint_producer::RunRequest;
/// use serde_json::json;
///
/// let request = RunRequest::new("ship")
///     .input(json!({ "order": 7 }))
///     .session("customer-3")
///     .delay(Duration::from_secs(60))
///     .tag("team", "blue");
/// assert!(request.check(0).is_ok());
/// assert_eq!(request.priority(12).check(0).unwrap_err().code().as_str(), "E_RANGE");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct RunRequest {
    pub(crate) graph: String,
    pub(crate) input: Value,
    pub(crate) session: Option<String>,
    pub(crate) run: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) request: Option<String>,
    pub(crate) queue: String,
    pub(crate) priority: i64,
    pub(crate) delay: Option<Duration>,
    pub(crate) at_ms: Option<i64>,
    pub(crate) expires: Option<When>,
    pub(crate) deadline: Option<When>,
    pub(crate) stale_after: Option<Duration>,
    pub(crate) on_stale: OnStale,
    pub(crate) if_busy: IfBusy,
    pub(crate) tags: BTreeMap<String, String>,
    pub(crate) max_steps: Option<u64>,
    pub(crate) budget_steps: Option<u64>,
    pub(crate) budget_time: Option<Duration>,
    pub(crate) memory: Memory,
    pub(crate) allow_unknown: bool,
}

impl RunRequest {
    /// A run of a graph with an empty input and the defaults.
    pub fn new(graph: impl Into<String>) -> Self {
        Self {
            graph: graph.into(),
            input: Value::Null,
            session: None,
            run: None,
            key: None,
            request: None,
            queue: "default".to_owned(),
            priority: i64::from(limits::PRIORITY_DEFAULT),
            delay: None,
            at_ms: None,
            expires: None,
            deadline: None,
            stale_after: None,
            on_stale: OnStale::default(),
            if_busy: IfBusy::default(),
            tags: BTreeMap::new(),
            max_steps: None,
            budget_steps: None,
            budget_time: None,
            memory: Memory::default(),
            allow_unknown: false,
        }
    }

    /// The input: an object, or null for the empty one.
    #[must_use]
    pub fn input(mut self, input: impl Into<Value>) -> Self {
        self.input = input.into();
        self
    }

    /// The input as a state.
    #[must_use]
    pub fn state(self, state: State) -> Self {
        self.input(state.into_json())
    }

    /// The session. Default: one of the run's own.
    #[must_use]
    pub fn session(mut self, session: impl Into<String>) -> Self {
        self.session = Some(session.into());
        self
    }

    /// The run's id. Default: a new one.
    #[must_use]
    pub fn run(mut self, run: impl Into<String>) -> Self {
        self.run = Some(run.into());
        self
    }

    /// The idempotency key: enqueued again with the same payload, it names the first run.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// The id of the call, to repeat one whose outcome is unknown. Default: a new one.
    #[must_use]
    pub fn request(mut self, request: impl Into<String>) -> Self {
        self.request = Some(request.into());
        self
    }

    /// The queue. Default: `default`.
    #[must_use]
    pub fn queue(mut self, queue: impl Into<String>) -> Self {
        self.queue = queue.into();
        self
    }

    /// 0 to 9, higher first. Default: 4.
    #[must_use]
    pub fn priority(mut self, priority: impl Into<i64>) -> Self {
        self.priority = priority.into();
        self
    }

    /// It starts so long after it was stored, five years at most.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = Some(delay);
        self
    }

    /// It starts at this time, in ms since 1970; one that has passed means at once.
    #[must_use]
    pub fn at_ms(mut self, at_ms: i64) -> Self {
        self.at_ms = Some(at_ms);
        self
    }

    /// It fails as expired when no worker took it so long after it was stored.
    #[must_use]
    pub fn expires_in(mut self, after: Duration) -> Self {
        self.expires = Some(When::In(millis(after)));
        self
    }

    /// It fails as expired when no worker took it by this time, in ms since 1970.
    #[must_use]
    pub fn expires_at_ms(mut self, at_ms: i64) -> Self {
        self.expires = Some(When::At(at_ms));
        self
    }

    /// It fails as expired when it has not ended so long after it was stored.
    #[must_use]
    pub fn deadline_in(mut self, after: Duration) -> Self {
        self.deadline = Some(When::In(millis(after)));
        self
    }

    /// It fails as expired when it has not ended by this time, in ms since 1970.
    #[must_use]
    pub fn deadline_at_ms(mut self, at_ms: i64) -> Self {
        self.deadline = Some(When::At(at_ms));
        self
    }

    /// Its plan is stale after so long without a move. Default: 24 h.
    #[must_use]
    pub fn stale_after(mut self, after: Duration) -> Self {
        self.stale_after = Some(after);
        self
    }

    /// What happens when it is stale. Default: a person is asked.
    #[must_use]
    pub fn on_stale(mut self, on_stale: OnStale) -> Self {
        self.on_stale = on_stale;
        self
    }

    /// What happens while the session has an active run. Default: this one waits.
    #[must_use]
    pub fn if_busy(mut self, if_busy: IfBusy) -> Self {
        self.if_busy = if_busy;
        self
    }

    /// One tag more; a second value of the same tag replaces the first.
    #[must_use]
    pub fn tag(mut self, tag: impl Into<String>, value: impl Into<String>) -> Self {
        self.tags.insert(tag.into(), value.into());
        self
    }

    /// The most distinct tasks of its life. Default: 1,000.
    #[must_use]
    pub fn max_steps(mut self, max_steps: u64) -> Self {
        self.max_steps = Some(max_steps);
        self
    }

    /// So many distinct tasks, and a person is asked whether it goes on. Default: no budget.
    #[must_use]
    pub fn budget_steps(mut self, steps: u64) -> Self {
        self.budget_steps = Some(steps);
        self
    }

    /// So long in the hands of workers, and a person is asked whether it goes on: the time in
    /// which it waits for an answer, a timer or a free worker does not count. What is under way
    /// is not cut short. Default: no budget.
    #[must_use]
    pub fn budget_time(mut self, time: Duration) -> Self {
        self.budget_time = Some(time);
        self
    }

    /// What it begins with of the session's last state. Default: all.
    #[must_use]
    pub fn memory(mut self, memory: Memory) -> Self {
        self.memory = memory;
        self
    }

    /// Takes the run although no worker ever published its graph; it waits for one.
    #[must_use]
    pub fn allow_unknown(mut self) -> Self {
        self.allow_unknown = true;
        self
    }

    /// Checks everything that can be checked without the store. `now_ms` is the store's time.
    ///
    /// # Errors
    /// The first fault, with its stable code and field.
    pub fn check(&self, now_ms: i64) -> Result<(), Refusal> {
        self.prepare(now_ms, limits::QUEUE_DEPTH_MAX).map(|_| ())
    }

    /// The run as a store takes it.
    pub(crate) fn prepare(&self, now_ms: i64, queue_depth_max: u64) -> Result<NewRun, Refusal> {
        let graph = GraphId::new(&self.graph)?;
        let session = self.session.as_ref().map(SessionId::new).transpose()?;
        let key = self.key.as_ref().map(KeyId::new).transpose()?;
        let queue = QueueId::new(&self.queue)?;
        let request = self.request.as_ref().map(RequestId::new).transpose()?;
        let run = self.run.as_ref().map(RunId::new).transpose()?;
        let (run, request) = name(run, request, now_ms)?;
        let start = self.start(now_ms)?;
        end_is_ahead("expires", self.expires, start, now_ms)?;
        end_is_ahead("deadline", self.deadline, start, now_ms)?;
        let payload = self.payload()?;
        Ok(NewRun {
            payload_hash: payload_hash(&graph, session.as_ref(), &payload),
            payload: payload.encode(),
            priority: priority(self.priority)?,
            tags: tags(&self.tags)?,
            fingerprint: None,
            if_busy: self.if_busy,
            expires: self.expires,
            deadline: self.deadline,
            run,
            request,
            graph,
            queue,
            session,
            start,
            key,
            queue_depth_max,
        })
    }

    fn start(&self, now_ms: i64) -> Result<When, Refusal> {
        let (field, start) = match (self.delay, self.at_ms) {
            (Some(_), Some(_)) => {
                let message = "cannot stand beside a time to start at; give one of the two";
                return Err(Refusal::new(Code::Range, "delay", message));
            }
            (Some(delay), None) => ("delay", When::In(millis(delay))),
            (None, Some(at_ms)) => ("at", When::At(at_ms)),
            (None, None) => return Ok(When::In(0)),
        };
        is_near(field, start, now_ms)?;
        Ok(start)
    }

    fn payload(&self) -> Result<RunPayload, Refusal> {
        let initial = input(&self.input)?;
        let max_steps = self.max_steps.map(steps).transpose()?;
        let budget = Budget {
            steps: self.budget_steps.map(budget_steps).transpose()?,
            time_ms: self.budget_time.map(budget_time).transpose()?,
        };
        let stale_after_ms = self.stale_after.map(stale_after).transpose()?;
        let payload = RunPayload {
            memory: self.memory.clone(),
            on_stale: self.on_stale,
            max_steps,
            budget,
            stale_after_ms,
            ..RunPayload::new(initial)
        };
        if let Memory::Keys(keys) = &self.memory {
            let bytes = keys.iter().map(String::len).sum::<usize>();
            if bytes > limits::PAYLOAD_BYTES_MAX {
                let message = format!("has {bytes} bytes of keys");
                return Err(Refusal::new(Code::TooLarge, "memory", message));
            }
        }
        Ok(payload)
    }
}

/// Without a run id the request id is one, so that a repeat by request id finds the same run.
pub(crate) fn name(
    run: Option<RunId>,
    request: Option<RequestId>,
    now_ms: i64,
) -> Result<(RunId, RequestId), Refusal> {
    Ok(match (run, request) {
        (Some(run), Some(request)) => (run, request),
        (Some(run), None) => (run, Random.request_id()),
        (None, Some(request)) => (RunId::new(&request)?, request),
        (None, None) => {
            let run = Random.run_id(now_ms);
            let request = RequestId::new(&run)?;
            (run, request)
        }
    })
}

/// The hash of what the work is, not of how or when it is queued.
pub(crate) fn payload_hash(
    graph: &GraphId,
    session: Option<&SessionId>,
    payload: &RunPayload,
) -> String {
    meaning_hash(&json!({ "graph": graph, "session": session, "payload": payload }))
}

#[cfg(test)]
mod tests;
