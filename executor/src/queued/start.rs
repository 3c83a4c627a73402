//! From a claim to the run loop: the beginning of a new run, or the place where another stopped.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
};

use holdpoint_graph::{
    Beginning, Code, CompiledGraph, Engine, Event, InterruptKind, OnStale, Progress, Reason,
    ReasonCode, RunId, RunLimits, RunPayload, State,
};
use holdpoint_storage::{ClaimedRun, RunHead, StoreError};

use super::{
    Claimed, Outcome, QueuedExecutor,
    ending::{Ending, claim_events, end_with, put_off_with, undecodable},
};
use crate::{
    config::ms,
    journal::{Journal, Loaded, Opening, load},
    run_loop::{Facts, RunLoop},
};

impl QueuedExecutor {
    /// Executes a run whose payload, journal and graph are there.
    pub(super) async fn drive(
        &self,
        claimed: Claimed,
        payload: RunPayload,
        loaded: Loaded,
        graph: CompiledGraph,
    ) -> Outcome {
        let Claimed { run: ClaimedRun { head, inbox, session_last, lease, .. }, control, time } =
            claimed;
        let engine = Engine::new(graph, head.run.clone());
        let opening = Opening {
            store: Arc::clone(&self.store),
            listeners: self.listeners.clone(),
            config: self.config,
            time: Arc::clone(&time),
            control: control.clone(),
            lease: lease.clone(),
        };
        let (mut journal, mut progress) = Journal::new(opening, loaded);
        let begun = Begun { engine: &engine, head: &head, lease: &lease, payload: &payload };
        match self.prepare(&begun, session_last.as_ref(), &mut journal, &mut progress).await {
            Ok(None) => {}
            Ok(Some(ending)) => return end_with((journal, progress), ending).await,
            Err(error) => {
                tracing::error!(run = %head.run, %error, "cannot read the session's state");
                let claims = claim_events(&head, &lease);
                if error.is_retryable() {
                    return Outcome::GivenUp;
                }
                if error.code() == Code::SchemaNewer {
                    return put_off_with((journal, progress), claims).await;
                }
                claims.into_iter().for_each(|event| journal.push(event));
                let ending = undecodable(format!("the session's last state: {error}"));
                return end_with((journal, progress), ending).await;
            }
        }
        let facts = Facts {
            run: head.run,
            session: head.session,
            epoch: lease.pair.epoch,
            nonce: lease.pair.nonce.clone(),
            claimed_at_ms: head.updated_at_ms,
            deadline_ms: head.deadline_ms,
            config: self.config,
            control,
            time,
            listeners: self.listeners.clone(),
            partials: self.partials.clone(),
        };
        RunLoop::new(engine, progress, journal, facts, inbox).run().await
    }

    /// What comes before the first node of a claim: the beginning of a new run, who held it, and
    /// the questions that an earlier owner or the time left. Says when the run must end instead.
    async fn prepare(
        &self,
        begun: &Begun<'_>,
        session_last: Option<&RunId>,
        journal: &mut Journal,
        progress: &mut Progress,
    ) -> Result<Option<Ending>, StoreError> {
        let Begun { engine, head, lease, payload } = begun;
        let now_ms = journal.now_ms();
        let moved_at_ms = journal.moved_at_ms();
        let mut events = Vec::new();
        if !progress.is_begun() {
            let base = match self.base(session_last, payload).await {
                Ok(base) => base,
                Err(error @ StoreError::Corrupt { .. }) => {
                    let (code, message) = (ReasonCode::Undecodable, error.to_string());
                    return Ok(Some(Ending::Failed(Reason { code, message, node: None })));
                }
                Err(error) => return Err(error),
            };
            match begin(engine, payload, &base, self.limits(payload)) {
                Ok(started) => events.push(started),
                Err(reason) => return Ok(Some(Ending::Failed(reason))),
            }
            // A run that is pinned has begun: the session's next run starts from it.
            journal.pin(engine.graph().fingerprint());
        }
        events.extend(claim_events(head, lease));
        for event in events {
            progress.apply(&event).expect("a claim follows anything");
            journal.push(event);
        }
        let mut left = engine.recover(progress, now_ms);
        left.extend(engine.reroute(progress));
        left.into_iter().for_each(|event| journal.push(event));
        let stale_after_ms = payload.stale_after_ms.unwrap_or(ms(self.config.stale_after));
        let moved_at_ms = moved_at_ms.max(progress.fresh_at_ms());
        let idle_ms = moved_at_ms.map_or(0, |at| now_ms.saturating_sub(at));
        let is_asked = progress.open().any(|open| open.kind == InterruptKind::Stale);
        if idle_ms <= stale_after_ms || is_asked {
            return Ok(None);
        }
        match payload.on_stale {
            OnStale::Resume => {}
            OnStale::Cancel => {
                return Ok(Some(Ending::Cancelled("its plan is stale".to_owned())));
            }
            OnStale::Ask => {
                let event = engine.stale(progress, idle_ms, now_ms);
                progress.apply(&event).expect("a question may open at any time");
                journal.push(event);
            }
        }
        Ok(None)
    }

    fn limits(&self, payload: &RunPayload) -> RunLimits {
        let named = Some(payload.budget).filter(|budget| !budget.is_none());
        RunLimits {
            max_steps: payload.max_steps.unwrap_or(self.config.max_steps),
            budget: named.unwrap_or(self.config.budget),
        }
    }

    /// The state that the run starts from: what is remembered of the session's last.
    async fn base(&self, last: Option<&RunId>, payload: &RunPayload) -> Result<State, StoreError> {
        let Some(last) = last else { return Ok(State::new()) };
        let Some(part) = self.store.checkpoint(last).await? else { return Ok(State::new()) };
        let loaded = load(&self.namespace, last, part.snapshot.as_deref(), &part.records)?;
        Ok(payload.memory.of(loaded.progress.state().clone()))
    }
}

/// A claimed run whose graph is found.
struct Begun<'a> {
    engine: &'a Engine,
    head: &'a RunHead,
    lease: &'a holdpoint_storage::Lease,
    payload: &'a RunPayload,
}

/// The journal must be whole: as long as the head says, and with the hash the head has.
pub(super) fn complete(head: &RunHead, loaded: Loaded) -> Result<Loaded, StoreError> {
    if loaded.chain.seq() == head.seq && loaded.chain.hash() == head.hash {
        return Ok(loaded);
    }
    Err(StoreError::Corrupt {
        what: format!("run {}", head.run),
        why: format!(
            "its journal has {} events and another end than its head, which counts {}",
            loaded.chain.seq(),
            head.seq
        ),
    })
}

fn begin(
    engine: &Engine,
    payload: &RunPayload,
    base: &State,
    limits: RunLimits,
) -> Result<Event, Reason> {
    if let Some(start) = &payload.checkpoint {
        let begin = Beginning::Checkpoint {
            origin: start.origin.clone(),
            progress: start.progress.clone(),
            patches: start.patches.clone(),
        };
        return Ok(engine.started(begin, limits));
    }
    let start = || engine.start(base, payload.initial.clone(), limits);
    catch_unwind(AssertUnwindSafe(start)).map_err(|panic| Reason {
        code: ReasonCode::NodeError,
        message: format!("a reducer panicked: {}", holdpoint_graph::panic_text(&*panic)),
        node: None,
    })
}
