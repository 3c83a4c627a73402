//! The loop of one claimed run: settle, commit, start what may run, take what ends.
//!
//! ```text
//!   node futures ──commands──▶ ┌──────────┐ ──commit──▶ store
//!   node futures ──results───▶ │ run loop │
//!   keeper, worker ─control──▶ └──────────┘ ──start───▶ node futures
//! ```
//! Only the loop changes the progress and only it writes; a node starts after everything before
//! it is durable.

mod budget;
mod decide;
mod inbox;
mod nodes;

use std::{collections::HashMap, sync::Arc};

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use holdpoint_graph::{
    BoxFuture, Engine, Event, Outcome as Decided, Progress, Reason, RunId, SessionId, TaskRef,
};
use holdpoint_storage::{Disposition, InboxEntry};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use crate::{
    Control, ExecutorConfig, Outcome,
    attempt::Ended,
    control::Told,
    host::Command,
    journal::{Journal, Written},
    sink::{Listeners, SpanId},
    time::StoreTime,
};

/// Commands of a run's nodes that wait for the loop; a node waits when it is full.
const COMMANDS_MAX: usize = 64;

/// One claimed run while it executes.
pub(crate) struct RunLoop {
    pub(crate) engine: Engine,
    pub(crate) progress: Progress,
    pub(crate) journal: Journal,
    pub(crate) facts: Facts,
    pub(crate) inbox: Vec<InboxEntry>,
    /// By place, which has one task at most.
    running: HashMap<Vec<u32>, Running>,
    attempts: FuturesUnordered<BoxFuture<'static, (TaskRef, Ended)>>,
    /// Boxed: a channel has room for many at once, and most runs send none.
    commands: (mpsc::Sender<Box<Command>>, mpsc::Receiver<Box<Command>>),
    told: watch::Receiver<Told>,
    inbox_seen: u64,
    /// Up to when the time of a run with a budget of time is counted.
    counted_to_ms: i64,
}

/// What does not change while the run executes.
pub(crate) struct Facts {
    pub(crate) run: RunId,
    pub(crate) session: Option<SessionId>,
    pub(crate) epoch: u64,
    pub(crate) nonce: String,
    pub(crate) claimed_at_ms: i64,
    pub(crate) deadline_ms: Option<i64>,
    pub(crate) config: ExecutorConfig,
    pub(crate) control: Control,
    pub(crate) time: Arc<StoreTime>,
    pub(crate) listeners: Listeners,
    pub(crate) partials: mpsc::Sender<crate::queued::PartialOut>,
}

/// A task whose attempt is under way.
struct Running {
    task: TaskRef,
    dropped: CancellationToken,
    span: Option<SpanId>,
}

/// How an answer ends the whole run.
pub(super) enum Ends {
    Cancelled,
    Failed(Reason),
}

impl Ends {
    /// How an event ends the run, when it is an answer that does.
    pub(super) fn of(event: &Event) -> Option<Self> {
        match event {
            Event::InterruptAnswered { outcome: Decided::Cancelled, .. } => Some(Self::Cancelled),
            Event::InterruptAnswered { outcome: Decided::Stopped(reason), .. } => {
                Some(Self::Failed(reason.clone()))
            }
            _ => None,
        }
    }
}

/// Whether the loop goes on.
pub(super) type Flow = std::ops::ControlFlow<Outcome>;

impl RunLoop {
    pub(crate) fn new(
        engine: Engine,
        progress: Progress,
        journal: Journal,
        facts: Facts,
        inbox: Vec<InboxEntry>,
    ) -> Self {
        let told = facts.control.watch();
        Self {
            engine,
            progress,
            journal,
            inbox,
            running: HashMap::new(),
            attempts: FuturesUnordered::new(),
            commands: mpsc::channel(COMMANDS_MAX),
            told,
            inbox_seen: 0,
            counted_to_ms: facts.claimed_at_ms,
            facts,
        }
    }

    /// Executes until the run ends, parks, is put off, handed back or lost.
    pub(crate) async fn run(mut self) -> Outcome {
        loop {
            if let Flow::Break(outcome) = self.turn().await {
                self.drop_attempts();
                return outcome;
            }
        }
    }

    async fn turn(&mut self) -> Flow {
        self.obey().await?;
        self.settle().await?;
        self.decide().await?;
        if self.attempts.is_empty() {
            return Flow::Continue(());
        }
        self.take().await
    }

    /// Does what the run was told.
    async fn obey(&mut self) -> Flow {
        let told = *self.told.borrow_and_update();
        if told.is_lost || !self.facts.control.may_act(self.facts.time.monotonic()) {
            return Flow::Break(Outcome::Fenced);
        }
        if told.is_aborted {
            self.drop_attempts();
            return self.hand_back().await;
        }
        if told.inbox > self.inbox_seen {
            self.inbox_seen = told.inbox;
            if let Ok(inbox) = self.journal.inbox().await {
                self.inbox = inbox;
            }
        }
        Flow::Continue(())
    }

    /// What follows by itself: joins, gates, deadlines, answers that wait.
    async fn settle(&mut self) -> Flow {
        let now_ms = self.journal.now_ms();
        loop {
            self.pass_deadlines(now_ms).await?;
            let mut events = self.engine.remind(&mut self.progress, now_ms);
            let (settled, conflict) = self.engine.settle(&mut self.progress, now_ms);
            events.extend(settled);
            let ends = self.push_all(events);
            if let Some(reason) = conflict {
                return self.fail(reason).await;
            }
            let before = self.progress.seq();
            match ends.or_else(|| self.take_inbox()) {
                Some(Ends::Cancelled) => return self.cancel("the answer to a stale run").await,
                Some(Ends::Failed(reason)) => return self.fail(reason).await,
                None => {}
            }
            if self.progress.seq() == before {
                return Flow::Continue(());
            }
        }
    }

    /// Adds applied events; says whether one of them ends the run.
    fn push_all(&mut self, events: Vec<Event>) -> Option<Ends> {
        let ends = events.iter().find_map(Ends::of);
        for event in events {
            self.journal.push(event);
        }
        ends
    }

    /// Waits for something to end or to be told, and takes all that is there.
    async fn take(&mut self) -> Flow {
        let grace = self.facts.config.cancel_grace;
        let is_cancelled = self.facts.control.told().is_cancelled;
        let wake = self.progress.next_due_ms(self.facts.time.now_ms());
        tokio::select! {
            biased;
            Some(command) = self.commands.1.recv() => self.command(*command).await?,
            changed = self.told.changed() => {
                // The sender is in `self.facts.control`.
                let _ = changed;
            }
            Some((task, ended)) = self.attempts.next() => self.ended(task, ended).await?,
            () = tokio::time::sleep(grace), if is_cancelled => self.drop_attempts(),
            () = sleep_until_ms(&self.facts.time, wake), if wake.is_some() => {}
        }
        self.take_rest().await
    }

    /// Takes what else is there without waiting, so that it shares the next commit.
    async fn take_rest(&mut self) -> Flow {
        loop {
            if let Ok(command) = self.commands.1.try_recv() {
                self.command(*command).await?;
                continue;
            }
            let next = std::future::poll_fn(|cx| {
                std::task::Poll::Ready(match self.attempts.poll_next_unpin(cx) {
                    std::task::Poll::Ready(Some(ended)) => Some(ended),
                    std::task::Poll::Ready(None) | std::task::Poll::Pending => None,
                })
            });
            match next.await {
                Some((task, ended)) => self.ended(task, ended).await?,
                None => return Flow::Continue(()),
            }
        }
    }

    /// Writes what is pending and goes on.
    async fn flush(&mut self) -> Flow {
        self.count_time();
        match self.journal.commit(&self.progress, Disposition::Continue).await {
            Written::Done { inbox, .. } => {
                self.inbox = inbox;
                Flow::Continue(())
            }
            Written::Cancelled => self.cancel("a request").await,
            Written::Fenced => Flow::Break(Outcome::Fenced),
            Written::GivenUp(error) => self.give_up(&error),
        }
    }

    fn give_up(&self, error: &holdpoint_storage::StoreError) -> Flow {
        let (run, is_lost) = (&self.facts.run, self.facts.control.told().is_lost);
        if is_lost {
            // Whoever keeps the leases said so, in one line for all runs of the worker.
            tracing::debug!(%run, %error, "the lease ended before the last commit was taken");
        } else {
            tracing::error!(
                %run, %error,
                "gave the run up: its last commit was not taken while the lease lasted"
            );
        }
        Flow::Break(Outcome::GivenUp)
    }

    fn drop_attempts(&mut self) {
        for running in std::mem::take(&mut self.running).into_values() {
            running.dropped.cancel();
            self.end_span(running.span, Some("dropped"));
        }
        self.attempts.clear();
    }

    fn end_span(&self, span: Option<SpanId>, error: Option<&str>) {
        if let (Some(tracer), Some(span)) = (&self.facts.listeners.tracer, span) {
            tracer.end(span, error);
        }
    }

    fn is_running(&self, task: &TaskRef) -> bool {
        self.running.get(&task.branch).is_some_and(|running| running.task == *task)
    }

    /// Takes the attempt of a task out of those that run.
    fn no_longer_running(&mut self, task: &TaskRef) -> Option<Running> {
        match self.is_running(task) {
            true => self.running.remove(&task.branch),
            false => None,
        }
    }
}

async fn sleep_until_ms(time: &StoreTime, at_ms: Option<i64>) {
    let left = at_ms.unwrap_or(i64::MAX).saturating_sub(time.now_ms());
    let left = std::time::Duration::from_millis(u64::try_from(left).unwrap_or(0));
    tokio::time::sleep(left).await;
}
