//! The supervisor: a small process around the worker. When its child dies, it hands the child's
//! leases back at once, with how it died as the evidence, and starts another one.
//!
//! It runs no user code and holds no lease, so that nothing of what kills a worker kills it.

use std::{
    ffi::OsString,
    os::unix::process::ExitStatusExt as _,
    path::PathBuf,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use holdpoint_graph::WorkerId;
use holdpoint_storage::{Random, SharedClock, Store, SystemClock};
use rustix::process::{Pid, Signal, kill_process};
use tokio::{
    process::{Child, Command},
    signal::unix::{SignalKind, signal},
    task::JoinHandle,
    time::{sleep, timeout},
};

use crate::{ENV_CHILD, ENV_WORKER_ID, WorkerConfig, worker::host};

/// The pause before a new child when the last ones died young; doubled with each.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(5);
/// A child that dies within this time died young.
const YOUNG: Duration = Duration::from_secs(1);
/// How long a child may take to end after the drain's end, before it is killed.
const END_MAX: Duration = Duration::from_secs(5);
/// The pause between two tries to hand leases back.
const HAND_BACK_PAUSE: Duration = Duration::from_millis(100);
/// How long the supervisor stays to hand leases back when it is to end.
const HAND_BACK_MAX: Duration = Duration::from_secs(10);
/// Exit statuses that say that the command or its settings are wrong: a new child would say the
/// same.
const EXIT_USAGE: i32 = 2;
const EXIT_REFUSED: i32 = 3;

/// What a supervisor starts, and how it judges.
#[derive(Debug, Clone)]
pub struct SupervisorConfig {
    /// The program of the child, such as the path of the running one.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<OsString>,
    /// The waits before a run is offered again that lost 1, 2, 3 … workers in a row.
    pub loss_delays: Vec<Duration>,
    /// How long the child may drain; 5 s later it is killed.
    pub drain: Duration,
}

impl SupervisorConfig {
    /// For a child with these settings.
    pub fn new(program: impl Into<PathBuf>, args: Vec<OsString>, worker: &WorkerConfig) -> Self {
        let (program, loss_delays) = (program.into(), worker.loss_delays.clone());
        Self { program, args, loss_delays, drain: worker.drain }
    }
}

/// Starts the child, and a new one whenever it dies, until it ends in order or a signal told it to
/// end. Answers the exit status for this process: the child's, or 128 and its signal.
///
/// The first SIGTERM or SIGINT is passed on, and so is the second, after which the child has 5 s.
///
/// # Errors
/// When the signals cannot be watched or the first child cannot be started.
pub async fn supervise(config: SupervisorConfig, store: Arc<dyn Store>) -> std::io::Result<i32> {
    let clock: SharedClock = Arc::new(SystemClock);
    let mut signals = Signals::new()?;
    let mut young = 0;
    let mut hand_backs = Vec::new();
    let end = loop {
        let worker = Random.worker_id(&host(), std::process::id());
        let born = clock.monotonic();
        let mut child = match start(&config, &worker) {
            Ok(child) => child,
            Err(error) if hand_backs.is_empty() => return Err(error),
            Err(error) => {
                tracing::error!(%error, "cannot start a new worker");
                young += 1;
                if signals.come_within(pause(young)).await {
                    break 1;
                }
                continue;
            }
        };
        // Closed by nobody but the end of this process: it is what the child watches. Taken out
        // of `child`, whose `wait` would close it.
        let _input = child.stdin.take();
        let (status, was_told) = signals.guard(&mut child, config.drain).await?;
        if status.success() {
            break 0;
        }
        let evidence = evidence(status);
        tracing::error!(%worker, evidence, "the worker died; its runs are offered again");
        hand_backs.retain(|hand_back: &JoinHandle<()>| !hand_back.is_finished());
        hand_backs.push(hand_back(&config, &store, worker, evidence));
        let code = status.code();
        if was_told || matches!(code, Some(EXIT_USAGE | EXIT_REFUSED)) {
            break code.unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        }
        let lived = clock.monotonic().saturating_duration_since(born);
        young = if lived < YOUNG { young + 1 } else { 0 };
        if signals.come_within(pause(young)).await {
            break code.unwrap_or(1);
        }
    };
    for hand_back in hand_backs {
        // What is not handed back by then is recovered when the leases are over.
        let _ = timeout(HAND_BACK_MAX, hand_back).await;
    }
    Ok(end)
}

fn start(config: &SupervisorConfig, worker: &WorkerId) -> std::io::Result<Child> {
    Command::new(&config.program)
        .args(&config.args)
        .env(ENV_CHILD, std::process::id().to_string())
        .env(ENV_WORKER_ID, worker.as_str())
        .stdin(Stdio::piped())
        // A signal from the terminal goes to the supervisor alone, which passes it on once.
        .process_group(0)
        .kill_on_drop(true)
        .spawn()
}

/// Hands the leases of a dead worker back; repeated until it is done.
fn hand_back(
    config: &SupervisorConfig,
    store: &Arc<dyn Store>,
    worker: WorkerId,
    evidence: String,
) -> JoinHandle<()> {
    let delays = config.loss_delays.iter().copied().map(crate::config::ms);
    let (delays, store) = (delays.collect::<Vec<_>>(), Arc::clone(store));
    tokio::spawn(async move {
        let mut has_failed = false;
        loop {
            match store.lost(&worker, &evidence, &delays).await {
                Ok(runs) => {
                    tracing::info!(%worker, runs = runs.len(), "handed back");
                    return;
                }
                Err(error) => {
                    if !std::mem::replace(&mut has_failed, true) {
                        tracing::warn!(%worker, %error, "could not hand back yet");
                    }
                    sleep(HAND_BACK_PAUSE).await;
                }
            }
        }
    })
}

/// How a process died, in the words of the journal.
fn evidence(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("signal {signal}"),
        (None, Some(code)) => format!("exit {code}"),
        (None, None) => "unknown".to_owned(),
    }
}

/// The pause before the next child after so many that died young.
fn pause(young: u32) -> Duration {
    match young {
        0 => Duration::ZERO,
        young => (PAUSE_MIN * 2_u32.saturating_pow((young - 1).min(10))).min(PAUSE_MAX),
    }
}

/// The signals that end a worker.
struct Signals {
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        let (terminate, interrupt) = (SignalKind::terminate(), SignalKind::interrupt());
        Ok(Self { terminate: signal(terminate)?, interrupt: signal(interrupt)? })
    }

    async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.terminate.recv() => Signal::TERM,
            _ = self.interrupt.recv() => Signal::INT,
        }
    }

    /// Whether a signal comes within this time.
    async fn come_within(&mut self, time: Duration) -> bool {
        tokio::select! {
            biased;
            _ = self.next() => true,
            () = sleep(time) => false,
        }
    }

    /// Waits for the child's end and passes signals on; a child that does not end in time after
    /// them is killed. Says how it ended and whether it was told to.
    async fn guard(
        &mut self,
        child: &mut Child,
        drain: Duration,
    ) -> std::io::Result<(ExitStatus, bool)> {
        let mut told = 0;
        let mut patience = Duration::MAX;
        loop {
            let is_told = told > 0;
            tokio::select! {
                biased;
                status = child.wait() => return Ok((status?, is_told)),
                signal = self.next() => {
                    told += 1;
                    patience = if told == 1 { drain + END_MAX } else { END_MAX };
                    pass_on(child, signal);
                }
                () = sleep(patience), if is_told => {
                    tracing::error!("the worker does not end and is killed");
                    pass_on(child, Signal::KILL);
                    patience = END_MAX;
                }
            }
        }
    }
}

fn pass_on(child: &Child, signal: Signal) {
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    if let Some(pid) = pid
        && let Err(error) = kill_process(pid, signal)
    {
        tracing::warn!(%error, ?signal, "could not pass the signal on");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn evidence_names_the_signal_or_the_exit() {
        assert_eq!(evidence(ExitStatus::from_raw(9)), "signal 9");
        assert_eq!(evidence(ExitStatus::from_raw(101 << 8)), "exit 101");
    }

    #[test]
    fn a_child_that_lived_is_replaced_at_once_and_young_ones_ever_later() {
        let pauses = [0, 1, 2, 3, 6, 7, 40].map(|young| pause(young).as_millis());
        assert_eq!(pauses, [0, 100, 200, 400, 3_200, 5_000, 5_000]);
    }
}
