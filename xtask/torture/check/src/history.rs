//! The history: what each process of a torture run says it did, one JSON line for each thing.
//!
//! What a line means depends on its operation; the checkers rely on the table at [`Op`].

use std::{
    fs,
    path::{Path, PathBuf},
};

use holdpoint_storage::{Clock, SystemClock};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a line is about. Fields that are not named are free.
///
/// | operation | written by | `id` | phases, other fields |
/// | --- | --- | --- | --- |
/// | `enqueue` | a producer | the run's id | invoke, then ok, fail or unknown |
/// | `signal` | a signaller | request id | the same; `run`; `node` = gate or interrupt; `detail` |
/// | `cancel` | a canceller | request id | the same; `run` |
/// | `node` | a worker | free | invoke: it begins; ok: it is about to return; place, pair |
/// | `effect` | the effect service | the effect's id | invoke: a call came; ok: done; `detail` |
/// | `fault` | the injector | its target | invoke: it begins; ok: it is over; `code` = its kind |
/// | `worker` | a worker | free | `code`: `start`, `stop`, `gave_up`, `E_FENCED`, `stale_taken` |
///
/// * Repeats of one call with one request id repeat its id.
/// * A node that fails or is dropped says `fail`, one that still works may say `unknown`.
/// * Who records an owner's calls writes `claim` (ok), and `commit`, `renew`, `release` (invoke,
///   then ok when it was taken), with run, pair and an id; a refused one is `E_FENCED` besides.
/// * *Place* is `run`, `node`, `visit`, `attempt`; *pair* is `epoch` and `nonce`.
/// * `detail` of a signal: `{"foreign": true}` when it must be refused, because it names an
///   interrupt that is not open, or not of this run.
/// * `detail` of an effect: `{"class": "pure" | "idempotent" | "unsafe", "key": KEY}`. Its id
///   names the place in the run, and is the same for each attempt.
/// * The target of a fault is the `process` of a worker, `pid-N`, or `store`. Its kinds are the
///   constants of [`fault`].
/// * The `process` of a worker's lines is its worker id, as journals have it; its `start` line
///   has `{"pid": N}`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Op {
    /// A producer enqueues a run.
    Enqueue,
    /// Somebody answers a question.
    Signal,
    /// Somebody cancels a run.
    Cancel,
    /// A node's function runs.
    Node,
    /// The effect service is called.
    Effect,
    /// The injector does harm, or mends it.
    Fault,
    /// A worker says something of itself.
    Worker,
}

/// The kinds of faults, as `code` has them.
pub mod fault {
    /// `kill -9` of a worker's process; the supervisor, if there is one, lives.
    pub const KILL: &str = "kill";
    /// `kill -9` of a worker with its supervisor: a dead machine.
    pub const MACHINE: &str = "machine";
    /// `SIGTERM` to a worker.
    pub const TERM: &str = "term";
    /// `SIGSTOP` (invoke) and `SIGCONT` (ok) of a worker.
    pub const PAUSE: &str = "pause";
    /// A worker's way to the store is cut, delayed or silent.
    pub const CUT: &str = "cut";
    /// `kill -9` of the store's server, and its restart.
    pub const STORE_KILL: &str = "store_kill";
    /// A power cut of the store, and its restart.
    pub const POWER: &str = "power";
    /// The store stalls: stopped, slow syncs, no space.
    pub const STALL: &str = "stall";
    /// All faults are over (ok only): from here on everything must heal.
    pub const HEAL: &str = "heal";
}

/// How far the thing is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// It begins.
    Invoke,
    /// It was done.
    Ok,
    /// It was refused, and had no effect.
    Fail,
    /// Nobody knows.
    Unknown,
}

/// One line of the history; absent fields are left out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// `CLOCK_MONOTONIC` in ns, the same for all processes of a machine.
    pub mono: u64,
    /// Wall time in ms since 1970, to be compared with the times of events.
    pub wall: i64,
    /// Who writes.
    pub process: String,
    /// What it is about.
    pub op: Op,
    /// What it is about exactly, see [`Op`].
    pub id: String,
    /// How far it is.
    pub phase: Phase,
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The node, or what a signal answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The visit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub visit: Option<u64>,
    /// The attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u64>,
    /// The epoch of the lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub epoch: Option<i64>,
    /// The nonce of the lease.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<String>,
    /// The number of an event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    /// An error's code, or a kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// Anything else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detail: Option<Value>,
}

impl Line {
    /// A line of now, whose process the recorder fills in.
    pub fn now(op: Op, phase: Phase, id: impl Into<String>) -> Self {
        Self {
            mono: mono_ns(),
            wall: SystemClock.wall_ms(),
            process: String::new(),
            op,
            id: id.into(),
            phase,
            run: None,
            node: None,
            visit: None,
            attempt: None,
            epoch: None,
            nonce: None,
            seq: None,
            code: None,
            detail: None,
        }
    }

    /// With a run.
    #[must_use]
    pub fn run(mut self, run: impl Into<String>) -> Self {
        self.run = Some(run.into());
        self
    }

    /// With a node and its visit.
    #[must_use]
    pub fn node(mut self, node: impl Into<String>, visit: u64) -> Self {
        self.node = Some(node.into());
        self.visit = Some(visit);
        self
    }

    /// With an attempt.
    #[must_use]
    pub const fn attempt(mut self, attempt: u64) -> Self {
        self.attempt = Some(attempt);
        self
    }

    /// With a lease's pair.
    #[must_use]
    pub fn pair(mut self, epoch: i64, nonce: impl Into<String>) -> Self {
        self.epoch = Some(epoch);
        self.nonce = Some(nonce.into());
        self
    }

    /// With a code.
    #[must_use]
    pub fn code(mut self, code: impl Into<String>) -> Self {
        self.code = Some(code.into());
        self
    }

    /// With details.
    #[must_use]
    pub fn detail(mut self, detail: Value) -> Self {
        self.detail = Some(detail);
        self
    }
}

/// `CLOCK_MONOTONIC` in ns.
#[must_use]
pub fn mono_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    // Neither is ever negative on this clock.
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// All lines of a torture run, by time.
#[derive(Debug, Clone, Default)]
pub struct History {
    /// The lines.
    pub lines: Vec<Line>,
}

/// Why a history cannot be read.
#[derive(Debug)]
#[non_exhaustive]
pub enum HistoryError {
    /// A file or the folder cannot be read.
    Io(PathBuf, std::io::Error),
    /// A line that is not the last of its file is no line of a history.
    Torn(PathBuf, usize, serde_json::Error),
}

impl std::fmt::Display for HistoryError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Io(path, error) => write!(f, "cannot read {}: {error}", path.display()),
            Self::Torn(path, line, error) => {
                write!(f, "{}:{line} is no line of a history: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for HistoryError {}

impl History {
    /// Reads all `*.jsonl` files of `folder`.
    ///
    /// A last line without its end is dropped: its writer was killed in the write.
    ///
    /// # Errors
    /// When a file cannot be read, or any other line is no line of a history.
    pub fn read(folder: &Path) -> Result<Self, HistoryError> {
        let io = |path: &Path| {
            let path = path.to_owned();
            move |error| HistoryError::Io(path, error)
        };
        let mut lines = Vec::new();
        for entry in fs::read_dir(folder).map_err(io(folder))? {
            let path = entry.map_err(io(folder))?.path();
            if path.extension().is_some_and(|extension| extension == "jsonl") {
                let text = fs::read(&path).map_err(io(&path))?;
                parse(&path, &text, &mut lines)?;
            }
        }
        Ok(Self::of(lines))
    }

    /// A history of these lines.
    #[must_use]
    pub fn of(mut lines: Vec<Line>) -> Self {
        lines.sort_by_key(|line| line.mono);
        Self { lines }
    }
}

fn parse(path: &Path, text: &[u8], lines: &mut Vec<Line>) -> Result<(), HistoryError> {
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    for (at, line) in text[..whole].split_inclusive(|byte| *byte == b'\n').enumerate() {
        let torn = |error| HistoryError::Torn(path.to_owned(), at + 1, error);
        lines.push(serde_json::from_slice(line).map_err(torn)?);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::Recorder;

    fn line(id: &str) -> Line {
        Line::now(Op::Node, Phase::Ok, id).run("r").node("a", 2).attempt(1).pair(7, "n")
    }

    #[test]
    fn what_processes_wrote_comes_back_by_time() {
        let folder = tempfile::tempdir().unwrap();
        let open = |name| Recorder::open(folder.path(), name).unwrap();
        let (a, b) = (open("a"), open("b"));
        a.write(line("1").detail(json!({"key": "k"}))).unwrap();
        b.write(line("2")).unwrap();
        a.write(line("3")).unwrap();
        fs::write(folder.path().join("other.txt"), "no line").unwrap();
        let history = History::read(folder.path()).unwrap();
        let seen: Vec<_> =
            history.lines.iter().map(|l| (l.process.as_str(), l.id.as_str())).collect();
        assert_eq!(seen, [("a", "1"), ("b", "2"), ("a", "3")]);
        assert_eq!(history.lines[0].visit, Some(2));
        assert_eq!(history.lines[0].nonce.as_deref(), Some("n"));
        assert_eq!(history.lines[1].detail, None);
    }

    #[test]
    fn a_torn_last_line_is_dropped_at_any_length() {
        let whole = serde_json::to_string(&line("1")).unwrap() + "\n";
        let torn = serde_json::to_string(&line("2")).unwrap();
        for end in 0..=torn.len() {
            let mut lines = Vec::new();
            let text = whole.clone() + &torn[..end];
            parse(Path::new("p"), text.as_bytes(), &mut lines).unwrap();
            assert_eq!(lines.len(), 1, "cut at {end}");
        }
    }

    #[test]
    fn a_torn_line_in_the_middle_is_an_error_with_its_place() {
        let whole = serde_json::to_string(&line("1")).unwrap() + "\n";
        let text = format!("{whole}{}\n{whole}", &whole[..20]);
        let error = parse(Path::new("p.jsonl"), text.as_bytes(), &mut Vec::new()).unwrap_err();
        assert!(error.to_string().starts_with("p.jsonl:2 is no line"), "{error}");
    }
}
