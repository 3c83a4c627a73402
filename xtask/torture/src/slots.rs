//! The processes of the torture: started, found, killed, started again.

use std::{
    ffi::OsString,
    fs::{self, OpenOptions},
    io,
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    time::Duration,
};

use anyhow::{Context as _, Result};
use holdpoint_storage::{Clock as _, SystemClock};
use holdpoint_worker::ENV_WORKER_ID;
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

/// How long a process may take to be gone after `kill -9`; only a disk can delay it.
const GONE_MAX: Duration = Duration::from_secs(5);
/// How often it is tried to stop a process outside of a write.
const STOP_TRIES: usize = 50;
/// The pause between two looks at a process.
const LOOK_EVERY: Duration = Duration::from_millis(1);

/// Environment variables.
pub(crate) type Env = Vec<(OsString, OsString)>;

/// A process of this program that is started again and again.
#[derive(Debug)]
pub(crate) struct Part {
    args: Vec<String>,
    env: Env,
    log: PathBuf,
    child: Option<Child>,
}

/// The process under a supervisor, which does the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkerProcess {
    pub(crate) pid: Pid,
    /// Its worker id, as journals have it.
    pub(crate) worker: String,
}

impl Part {
    /// A process with these arguments; what it says on stderr is appended to `log`.
    pub(crate) fn new(args: Vec<String>, env: Env, log: PathBuf) -> Self {
        Self { args, env, log, child: None }
    }

    /// Starts it, unless it runs. Answers how the one before ended, if it did.
    pub(crate) fn ensure(&mut self) -> Result<Option<ExitStatus>> {
        let ended = match &mut self.child {
            None => None,
            Some(child) => match child.try_wait()? {
                None => return Ok(None),
                Some(status) => Some(status),
            },
        };
        let log = OpenOptions::new().create(true).append(true).open(&self.log)?;
        let program = std::env::current_exe()?;
        let mut command = Command::new(program);
        command.args(&self.args).envs(self.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        let child = command.spawn().context("a process of the torture cannot be started")?;
        self.child = Some(child);
        Ok(ended)
    }

    /// Its process; none when it was never started.
    pub(crate) fn pid(&self) -> Option<Pid> {
        self.child.as_ref().map(Pid::from_child)
    }

    /// Whether it runs.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.child.as_mut().is_some_and(|child| matches!(child.try_wait(), Ok(None)))
    }

    /// Asks it to end.
    pub(crate) fn terminate(&mut self) {
        if self.is_alive()
            && let Some(pid) = self.pid()
        {
            send(pid, Signal::TERM);
        }
    }

    /// `kill -9`, and waits for the end.
    pub(crate) fn kill(&mut self) -> Result<()> {
        if let Some(mut child) = self.child.take() {
            child.kill()?;
            child.wait()?;
        }
        Ok(())
    }

    /// The worker process under it, when it is a supervisor and has one.
    pub(crate) fn worker(&self) -> Option<WorkerProcess> {
        children(self.pid()?).into_iter().find_map(|pid| {
            let worker = worker_id(&pid.as_raw_nonzero().to_string())?;
            Some(WorkerProcess { pid, worker })
        })
    }

    /// `kill -9` of it and of the worker process under it, which live in two process groups.
    /// Answers the worker that died, unless it had only just begun.
    pub(crate) fn kill_machine(&mut self) -> Result<Option<WorkerProcess>> {
        let Some(pid) = self.pid() else { return Ok(None) };
        // Neither may learn of the other's end: the supervisor would hand its worker's runs back,
        // and the worker its own.
        send(pid, Signal::STOP);
        until(pid, "stands still", || stands_still(pid))?;
        let worker = self.worker();
        // Also one that has no name yet: it would go on, alone, and end in its own good time.
        let children = children(pid);
        for child in &children {
            send(*child, Signal::KILL);
        }
        self.kill()?;
        children.into_iter().try_for_each(gone)?;
        Ok(worker)
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        // The harness ends; the worker process notices the end of its supervisor by itself.
        let _ = self.kill();
    }
}

impl WorkerProcess {
    /// Stops it outside of a write to a file that is shared: one that stands still in a write
    /// stops everybody, which is another fault. False: it is gone, or hardly does anything else.
    pub(crate) fn stop(&self) -> bool {
        for _ in 0..STOP_TRIES {
            if !self.send(Signal::STOP) {
                return false;
            }
            if !holds_lock(self.pid) {
                return true;
            }
            self.send(Signal::CONT);
            std::thread::sleep(LOOK_EVERY);
        }
        false
    }

    /// How long it has lived.
    pub(crate) fn age(&self) -> Duration {
        let (Ok(stat), Ok(uptime)) = (
            fs::read_to_string(format!("/proc/{}/stat", self.pid.as_raw_nonzero())),
            fs::read_to_string("/proc/uptime"),
        ) else {
            return Duration::ZERO;
        };
        // The 22nd field, in hundredths of a second; the second may hold anything in brackets.
        let began = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(19));
        let began = began.and_then(|ticks| ticks.parse::<f64>().ok()).unwrap_or(f64::MAX) / 100.0;
        let now = uptime.split(' ').next().and_then(|now| now.parse::<f64>().ok()).unwrap_or(0.0);
        Duration::try_from_secs_f64(now - began).unwrap_or_default()
    }

    /// Sends a signal, unless the process is another by now.
    pub(crate) fn send(&self, signal: Signal) -> bool {
        let is_same =
            worker_id(&self.pid.as_raw_nonzero().to_string()).as_ref() == Some(&self.worker);
        is_same && send(self.pid, signal)
    }
}

/// The worker id in the environment of a process.
fn worker_id(pid: &str) -> Option<String> {
    let environ = fs::read(format!("/proc/{pid}/environ")).ok()?;
    let name = format!("{ENV_WORKER_ID}=");
    environ.split(|byte| *byte == 0).find_map(|variable| {
        let value = variable.strip_prefix(name.as_bytes())?;
        Some(String::from_utf8_lossy(value).into_owned())
    })
}

/// Whether a process has a file locked for writing.
fn holds_lock(pid: Pid) -> bool {
    let locks = fs::read_to_string("/proc/locks").unwrap_or_default();
    let pid = pid.as_raw_nonzero().to_string();
    locks.lines().any(|lock| {
        let words: Vec<&str> = lock.split_whitespace().collect();
        words.contains(&"WRITE") && words.get(4) == Some(&pid.as_str())
    })
}

fn send(pid: Pid, signal: Signal) -> bool {
    kill_process(pid, signal).is_ok()
}

/// Waits until a process that is not our child is gone, with its locks.
pub(crate) fn gone(pid: Pid) -> Result<()> {
    until(pid, "is gone", || test_kill_process(pid).is_err() || is_zombie(pid))
}

fn until(pid: Pid, what: &str, is_so: impl Fn() -> bool) -> Result<()> {
    let since = SystemClock.monotonic();
    while !is_so() {
        let waited = SystemClock.monotonic().saturating_duration_since(since);
        anyhow::ensure!(waited < GONE_MAX, "it is not so that process {pid:?} {what}");
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}

/// The threads of a process; none when it is gone.
fn threads(pid: Pid) -> Vec<PathBuf> {
    let threads = fs::read_dir(format!("/proc/{}/task", pid.as_raw_nonzero()));
    threads.into_iter().flatten().flatten().map(|thread| thread.path()).collect()
}

/// The processes that a process has started, by whichever of its threads.
fn children(pid: Pid) -> Vec<Pid> {
    let lists = threads(pid)
        .into_iter()
        .filter_map(|thread| fs::read_to_string(thread.join("children")).ok());
    let children = lists.collect::<Vec<_>>().concat();
    children.split_whitespace().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect()
}

/// Whether no thread of a process can start another process any more. One that waits for its new
/// process to begin (D) has started it.
fn stands_still(pid: Pid) -> bool {
    threads(pid).iter().all(|thread| {
        let stat = fs::read_to_string(thread.join("stat")).unwrap_or_default();
        let state = stat.rsplit_once(") ").and_then(|(_, rest)| rest.chars().next());
        matches!(state, None | Some('T' | 't' | 'D' | 'Z' | 'X'))
    })
}

fn is_zombie(pid: Pid) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    stat.is_ok_and(|stat| stat.contains(") Z "))
}

/// `kill -9` of every process that has a file of this folder open, as when the power goes.
pub(crate) fn kill_owners(folder: &Path) -> Result<()> {
    let folder = folder.canonicalize()?;
    let has_one = |files: fs::ReadDir| {
        files
            .flatten()
            .any(|file| fs::read_link(file.path()).is_ok_and(|to| to.starts_with(&folder)))
    };
    for entry in fs::read_dir("/proc")? {
        let process = entry?;
        let pid = process.file_name().to_str().and_then(|name| Pid::from_raw(name.parse().ok()?));
        // A process that ended meanwhile has no files.
        if let Some(pid) = pid
            && fs::read_dir(process.path().join("fd")).is_ok_and(has_one)
        {
            send(pid, Signal::KILL);
            gone(pid)?;
        }
    }
    Ok(())
}

/// The processes with this in their environment, without our own.
pub(crate) fn left_over(mark: &str) -> io::Result<Vec<String>> {
    let own = std::process::id();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let name = entry?.file_name();
        let Some(pid) = name.to_str().and_then(|name| name.parse::<u32>().ok()) else { continue };
        let environ = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let is_ours = environ.windows(mark.len()).any(|part| part == mark.as_bytes());
        if is_ours && pid != own {
            let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let command = String::from_utf8_lossy(&command).replace('\0', " ");
            found.push(format!("{pid} {command}"));
        }
    }
    Ok(found)
}
