//! Where apalis is: its worker, monitor and layers drive the claimed runs. No other file names it,
//! and none of its types leaves this one.
//!
//! The backend neither claims nor renews in its `poll_*` functions. They are not called while the
//! worker drains, and any error of theirs ends the worker and drops every run; so the claim loop
//! and the lease keeper live by themselves, and the backend hands over what comes through a
//! channel.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};

use apalis::prelude::{Monitor, WorkerBuilder};
use apalis_core::{
    backend::{Backend, BackendConfig, finalize::Ephemeral, queue::Queue},
    error::{AbortError, BoxDynError},
    task::{Task, builder::TaskBuilder, task_id::TaskId},
    worker::context::WorkerContext,
};
use futures_util::future::{BoxFuture, FutureExt as _};
use holdpoint_executor::Outcome;
use holdpoint_storage::{SharedClock, Store};
use tokio::{sync::mpsc, task::JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::job::{Handler, Job};

/// What the runtime needs.
#[derive(Clone)]
pub(crate) struct Runtime {
    pub(crate) name: String,
    pub(crate) jobs: Jobs,
    pub(crate) handler: Handler,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: SharedClock,
}

/// The receiving end of the channel of claimed runs.
#[derive(Clone)]
pub(crate) struct Jobs(Arc<Mutex<mpsc::Receiver<Job>>>);

impl Jobs {
    pub(crate) fn new(receiver: mpsc::Receiver<Job>) -> Self {
        Self(Arc::new(Mutex::new(receiver)))
    }

    /// A run that waits and was not started.
    pub(crate) fn take_unstarted(&self) -> Option<Job> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).try_recv().ok()
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<Option<Job>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).poll_recv(cx)
    }
}

/// Runs apalis' worker until `stop`, and then until every run that was started has ended.
///
/// Dropping the future drops the runs.
///
/// # Errors
/// The text of what broke in the runtime; no run's failure does.
pub(crate) async fn run(runtime: Runtime, stop: CancellationToken) -> Result<(), String> {
    let monitor = Monitor::new().register(move |_| {
        let backend = RunBackend(runtime.clone());
        WorkerBuilder::new(runtime.name.clone()).backend(backend).build(RunService(runtime.clone()))
    });
    let context = monitor.context();
    let mut running = monitor.run().boxed();
    let ended = tokio::select! {
        ended = &mut running => ended,
        () = stop.cancelled() => {
            context.shutdown().map_err(|error| error.to_string())?;
            running.await
        }
    };
    ended.map_err(|error| error.to_string())
}

/// The claimed runs as apalis sees them.
struct RunBackend(Runtime);

impl Backend for RunBackend {
    type Task = Task<Job>;
    type Error = Infallible;

    fn poll_ready(
        &mut self,
        _: &mut Context<'_>,
        _: &WorkerContext,
    ) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        _: &WorkerContext,
    ) -> Poll<Option<Result<Self::Task, Infallible>>> {
        match ready!(self.0.jobs.poll(cx)) {
            Some(job) => Poll::Ready(Some(Ok(task(job)))),
            // The claim loop has ended, so the worker is told to end; no answer but that may be
            // "no more".
            None => Poll::Pending,
        }
    }

    fn poll_close(
        &mut self,
        _: &mut Context<'_>,
        _: &WorkerContext,
    ) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }
}

impl BackendConfig for RunBackend {
    type Args = Job;
    type Id = String;
    type Kind = Ephemeral;
    type Config = ();
    type Layer = SpawnLayer;

    fn config(&self) -> &() {
        &()
    }

    fn middleware(&mut self, _: &mut WorkerContext) -> SpawnLayer {
        SpawnLayer
    }
}

fn task(job: Job) -> Task<Job> {
    let head = &job.claimed().run.head;
    let id = TaskId::from_string(head.run.as_str());
    let claims_before = usize::try_from(head.claims.saturating_sub(1)).unwrap_or(usize::MAX);
    let queue = Queue::from(head.queue.as_str());
    TaskBuilder::new(job).task_id(id).attempt(claims_before).queue(queue).build()
}

/// Gives each run a task of its own, for real parallelism; dropped with the worker, never
/// detached from it.
struct SpawnLayer;

impl<S> tower::Layer<S> for SpawnLayer {
    type Service = SpawnService<S>;

    fn layer(&self, inner: S) -> SpawnService<S> {
        SpawnService(inner)
    }
}

struct SpawnService<S>(S);

impl<S> tower::Service<Task<Job>> for SpawnService<S>
where
    S: tower::Service<Task<Job>>,
    S::Response: Send + 'static,
    S::Error: Into<BoxDynError>,
    S::Future: Send + 'static,
{
    type Response = S::Response;
    type Error = BoxDynError;
    type Future = BoxFuture<'static, Result<S::Response, BoxDynError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxDynError>> {
        self.0.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, task: Task<Job>) -> Self::Future {
        let call = self.0.call(task);
        let run = tokio::spawn(async move { call.await.map_err(Into::into) });
        let mut run = AbortOnDrop(run);
        async move {
            (&mut run.0).await.unwrap_or_else(|broken| {
                if broken.is_panic() {
                    // User code is caught in the executor, so this is a fault of ours. The lease
                    // runs out, which counts as a lost worker, and the run goes on elsewhere.
                    tracing::error!(%broken, "a run's claim broke");
                }
                Err(broken.into())
            })
        }
        .boxed()
    }
}

struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Executes a run, and says to apalis how that ended. Nothing depends on what apalis makes of it.
#[derive(Clone)]
struct RunService(Runtime);

impl tower::Service<Task<Job>> for RunService {
    type Response = Outcome;
    type Error = BoxDynError;
    type Future = BoxFuture<'static, Result<Outcome, BoxDynError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxDynError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, task: Task<Job>) -> Self::Future {
        let Runtime { handler, store, clock, .. } = self.0.clone();
        async move {
            let outcome = task.args.execute(&handler, &*store, &clock).await?;
            match outcome {
                Outcome::Completed
                | Outcome::Cancelled
                | Outcome::Parked
                | Outcome::Rescheduled { .. }
                | Outcome::Released => Ok(outcome),
                Outcome::Failed(reason) => Err(AbortError::new(reason.as_str()).into()),
                Outcome::Fenced => Err("the lease was lost".into()),
                Outcome::GivenUp => Err("the store took no commit while the lease lasted".into()),
            }
        }
        .boxed()
    }
}
