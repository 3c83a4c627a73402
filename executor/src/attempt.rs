//! One attempt of a task: the node's future, with its time limit, its panics caught, its drop.

use std::{panic::AssertUnwindSafe, sync::Arc, time::Duration};

use futures_util::FutureExt as _;
use holdpoint_graph::{
    BoxFuture, Node, NodeContext, NodeError, State, TaskInfo, TaskRef, Update, panic_text,
};
use tokio_util::sync::CancellationToken;

use crate::host::AttemptHost;

/// How an attempt ended.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The node returned.
    Returned(Result<Update, NodeError>),
    /// The attempt was dropped: the node asked or sleeps, or the run stops.
    Dropped,
}

/// The attempt as a future that may be dropped at any time. Its output names the task.
pub(crate) fn attempt(
    node: &Node,
    info: TaskInfo,
    state: State,
    host: AttemptHost,
    limits: (Duration, CancellationToken),
) -> BoxFuture<'static, (TaskRef, Ended)> {
    let task = TaskRef { node: info.node.clone(), visit: info.visit, branch: info.branch.clone() };
    let (default_timeout, dropped) = limits;
    let timeout = node.timeout().unwrap_or(default_timeout);
    let host = Arc::new(host);
    let ctx = NodeContext::new(info, Arc::<AttemptHost>::clone(&host));
    // The call itself may panic too, before there is a future.
    let call = std::panic::catch_unwind(AssertUnwindSafe(|| node.call(ctx, state)));
    Box::pin(async move {
        let work = match call {
            Ok(work) => work,
            Err(panic) => return (task, Ended::Returned(Err(panicked(&*panic)))),
        };
        let work = tokio::time::timeout(timeout, AssertUnwindSafe(work).catch_unwind());
        let ended = tokio::select! {
            biased;
            () = dropped.cancelled() => return (task, Ended::Dropped),
            ended = work => ended,
        };
        let result = match ended {
            Err(_) => Err(timed_out(timeout)),
            Ok(Err(panic)) => Err(panicked(&*panic)),
            Ok(Ok(result)) => result.and_then(|update| {
                host.check_replayed()?;
                Ok(update)
            }),
        };
        (task, Ended::Returned(result))
    })
}

fn panicked(panic: &(dyn std::any::Any + Send)) -> NodeError {
    NodeError::retryable(format!("panic: {}", panic_text(panic))).with_code("panic")
}

fn timed_out(timeout: Duration) -> NodeError {
    NodeError::retryable(format!("the node took longer than {timeout:?}")).with_code("node_timeout")
}
