//! The supervised child's side: how it knows that it is one, and that its supervisor is gone.

use std::{io::Read as _, process, thread, time::Duration};

use holdpoint_graph::WorkerId;
use rustix::process::{Pid, getppid, test_kill_process};
use tokio::sync::oneshot;

use crate::Shutdown;

/// The variable that tells a process that it is a supervised child: its supervisor's process.
pub const ENV_CHILD: &str = "HOLDPOINT_CHILD";
/// The variable with the worker id that the supervisor chose for the child.
pub const ENV_WORKER_ID: &str = "HOLDPOINT_WORKER_ID";

/// How long a child whose supervisor is gone may take to hand its runs back.
const GOODBYE_MAX: Duration = Duration::from_secs(3);
/// The exit status of a child that did not manage in time: "software error" of `sysexits`.
const EXIT_ORPHANED: i32 = 70;

/// Whether this process is a supervised child. A process that a node of one started has the same
/// variables and is none: its parent is another, and the supervisor lives.
#[must_use]
pub fn is_child() -> bool {
    let supervisor = std::env::var(ENV_CHILD).ok().and_then(|pid| pid.parse::<i32>().ok());
    let Some(supervisor) = supervisor.and_then(Pid::from_raw) else { return false };
    // A child whose supervisor is gone already is one all the same: its input has ended.
    getppid() == Some(supervisor) || test_kill_process(supervisor).is_err()
}

/// The worker id of a supervised child; none in any other process.
#[must_use]
pub fn child_worker_id() -> Option<WorkerId> {
    let id = std::env::var(ENV_WORKER_ID).ok().filter(|_| is_child())?;
    WorkerId::new(id).ok()
}

/// Resolves when the supervisor is gone. It holds the other end of the child's standard input and
/// never writes to it, so the end of the input is the end of the supervisor, however it died.
///
/// Whoever calls this must leave the standard input alone. Cancel-safe.
pub async fn watch_parent() {
    let (gone, is_gone) = oneshot::channel();
    let spawned = thread::Builder::new().name("holdpoint-parent".to_owned()).spawn(move || {
        wait_for_end();
        // Nobody may listen any more.
        let _ = gone.send(());
    });
    if spawned.is_err() || is_gone.await.is_err() {
        tracing::warn!("cannot watch the supervisor; this process may outlive it");
        std::future::pending::<()>().await;
    }
}

/// Ends this process with its supervisor: hands the runs back at once, and exits after 3 s when
/// that did not work. Does nothing in a process that is no supervised child.
pub fn die_with_parent(shutdown: Shutdown) {
    if !is_child() {
        return;
    }
    let watch = move || {
        wait_for_end();
        tracing::error!("the supervisor is gone; this worker ends");
        shutdown.abort();
        thread::sleep(GOODBYE_MAX);
        process::exit(EXIT_ORPHANED);
    };
    if thread::Builder::new().name("holdpoint-parent".to_owned()).spawn(watch).is_err() {
        tracing::warn!("cannot watch the supervisor; this process may outlive it");
    }
}

/// Reads the standard input to its end.
fn wait_for_end() {
    let mut input = std::io::stdin().lock();
    let mut byte = [0];
    loop {
        match input.read(&mut byte) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            // An input that cannot be read is one that nobody holds.
            Err(_) => return,
        }
    }
}
