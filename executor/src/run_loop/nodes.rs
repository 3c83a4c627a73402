//! Starting nodes and taking what they do and return.

use std::time::Duration;

use holdpoint_graph::{Effect, Event, NodeError, TaskInfo, TaskRef, Update, limits::DELAY_MS_MAX};
use holdpoint_storage::Random;
use tokio_util::sync::CancellationToken;

use super::{Flow, RunLoop, Running};
use crate::{
    Outcome,
    attempt::{Ended, attempt},
    config::ms,
    host::{AttemptHost, Command},
    sink::SpanKind,
};

impl RunLoop {
    /// Starts an attempt of a task. An unsafe node is recorded as begun first.
    pub(super) async fn start(&mut self, task: TaskRef) -> Flow {
        let engine = self.engine.clone();
        let Some(node) = engine.graph().node(&task.node) else {
            let message = format!("the graph has no node {:?}", task.node);
            let code = holdpoint_graph::ReasonCode::IncompatibleGraph;
            let node = Some(task.node);
            return self.fail(holdpoint_graph::Reason { code, message, node }).await;
        };
        if node.effect() == Effect::Unsafe && !node.is_router() {
            self.begin_unsafe(&task, None).await?;
        }
        if !self.facts.control.may_act(self.facts.time.monotonic()) {
            return Flow::Break(Outcome::Fenced);
        }
        let state = self.progress.state_at(&task.branch).map(|state| node.view(state));
        let live = self.progress.task(&task);
        let (Some(state), Some(live)) = (state, live) else { return Flow::Continue(()) };
        let info = TaskInfo {
            run: self.facts.run.clone(),
            session: self.facts.session.clone(),
            graph: engine.graph().id().clone(),
            node: task.node.clone(),
            visit: task.visit,
            attempt: live.attempt(),
            branch: task.branch.clone(),
            epoch: self.facts.epoch,
            nonce: self.facts.nonce.clone(),
            answer: live.answer().cloned(),
        };
        let host = AttemptHost::new(
            task.clone(),
            live.calls().to_vec(),
            self.commands.0.clone(),
            self.facts.control.clone(),
            (self.facts.time.clone(), self.facts.config.sleep_in_place),
        );
        let dropped = CancellationToken::new();
        let limits = (self.facts.config.node_timeout, dropped.clone());
        let work = attempt(node, info, state, host, limits);
        self.attempts.push(work);
        let span = self.facts.listeners.tracer.as_ref().map(|tracer| {
            let session =
                self.facts.session.as_ref().map_or(self.facts.run.as_str(), |s| s.as_str());
            tracer.start(session, &format!("node:{}", task.node), SpanKind::Node)
        });
        self.running.insert(task.branch.clone(), Running { task, dropped, span });
        Flow::Continue(())
    }

    async fn begin_unsafe(&mut self, task: &TaskRef, step: Option<String>) -> Flow {
        let event = Event::NodeStarted { task: task.clone(), step, effect: Effect::Unsafe };
        self.apply(event);
        self.flush().await
    }

    /// Applies an event of a live task and adds it to the next commit.
    fn apply(&mut self, event: Event) {
        self.progress.apply(&event).expect("the task is live");
        self.journal.push(event);
    }

    /// Does what a node asks of the loop. A task that is no longer running is not heard.
    pub(super) async fn command(&mut self, command: Command) -> Flow {
        match command {
            Command::StepBegins { task, key, done } if self.is_running(&task) => {
                self.begin_unsafe(&task, Some(key)).await?;
                let _ = done.send(());
            }
            Command::StepEnds { task, key, value, done } if self.is_running(&task) => {
                self.apply(Event::StepRecorded { task, key, value });
                self.flush().await?;
                let _ = done.send(());
            }
            Command::Ask { task, key, question } if self.drop_one(&task) => {
                let now_ms = self.journal.now_ms();
                let event = self.engine.ask(&self.progress, &task, &key, &question, now_ms);
                self.apply(event);
            }
            Command::Sleep { task, until_ms } if self.drop_one(&task) => {
                let until_ms = until_ms.min(self.journal.now_ms().saturating_add(DELAY_MS_MAX));
                self.apply(Event::NodeSlept { task, until_ms });
            }
            Command::Emit { task, value } => {
                self.facts.listeners.partial(&self.facts.run, &task.node, &value);
                let out = crate::queued::PartialOut {
                    run: self.facts.run.clone(),
                    after: self.progress.seq(),
                    body: serde_json::json!({ "node": task.node, "value": value }),
                };
                // A full channel drops the partial: a run never waits for whoever watches.
                let _ = self.facts.partials.try_send(out);
            }
            Command::StepBegins { .. }
            | Command::StepEnds { .. }
            | Command::Ask { .. }
            | Command::Sleep { .. } => {}
        }
        Flow::Continue(())
    }

    /// Drops the attempt of a task that asked or sleeps. False: it is not running.
    fn drop_one(&mut self, task: &TaskRef) -> bool {
        let Some(running) = self.no_longer_running(task) else { return false };
        running.dropped.cancel();
        self.end_span(running.span, None);
        true
    }

    /// Takes the end of an attempt. What its node asked before it ended is heard first.
    pub(super) async fn ended(&mut self, task: TaskRef, ended: Ended) -> Flow {
        while let Ok(command) = self.commands.1.try_recv() {
            self.command(*command).await?;
        }
        let Some(running) = self.no_longer_running(&task) else { return Flow::Continue(()) };
        let result = match ended {
            Ended::Dropped => return Flow::Continue(()),
            Ended::Returned(result) => result
                .and_then(|update: Update| self.engine.complete(&mut self.progress, &task, update)),
        };
        let error = result.as_ref().err().map(|error| error.message().to_owned());
        self.end_span(running.span, error.as_deref());
        match result {
            Ok(event) => self.journal.push(event),
            Err(error) => self.failed(&task, &error),
        }
        Flow::Continue(())
    }

    /// A failed attempt: again after a wait, for good, or asked about.
    fn failed(&mut self, task: &TaskRef, error: &NodeError) {
        let doubts = self.engine.doubt(&mut self.progress, task, error, self.journal.now_ms());
        if !doubts.is_empty() {
            doubts.into_iter().for_each(|event| self.journal.push(event));
            return;
        }
        let attempt = self.progress.task(task).map_or(1, holdpoint_graph::Task::attempt);
        let policy = self.engine.graph().node(&task.node).map(holdpoint_graph::Node::retry);
        let policy = policy.unwrap_or_default();
        let may_retry = !error.is_permanent() && attempt < policy.attempts();
        let wait: Option<Duration> =
            may_retry.then(|| error.wait().unwrap_or_else(|| policy.wait(attempt, Random.unit())));
        let now_ms = self.journal.now_ms();
        let retry_at_ms = wait.map(|wait| now_ms.saturating_add(ms(wait).min(DELAY_MS_MAX)));
        tracing::info!(
            run = %self.facts.run, node = %task.node, attempt, error = %error,
            retries = retry_at_ms.is_some(), "node failed"
        );
        let event = self.engine.fail(&mut self.progress, task, error, retry_at_ms);
        self.journal.push(event);
    }
}
