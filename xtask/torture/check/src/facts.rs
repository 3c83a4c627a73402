//! What the checkers share: executions of nodes, faults and workers, put together from lines.
//!
//! Times are `CLOCK_MONOTONIC` in ns. Times of the store and of its clients are wall times of the
//! same machine, so they are moved over by the distance of the two clocks; that is right to a
//! millisecond or two as long as nobody sets the wall clock during the run.

use std::collections::{BTreeMap, HashMap};

use holdpoint_graph::Event;

use crate::{Dump, History, Line, Op, Phase, RunDump, fault};

/// ns in a ms.
pub(crate) const MS: u64 = 1_000_000;

/// By how many ms a store's time and the wall time of this machine may differ.
pub(crate) const APART_MS: i64 = 5;

/// History and dump, in the shape that checkers ask for.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    pub(crate) history: &'a History,
    pub(crate) dump: &'a Dump,
    pub(crate) runs: HashMap<&'a str, &'a RunDump>,
    /// By their beginning.
    pub(crate) executions: Vec<Execution<'a>>,
    /// The places in `executions` of those of each run.
    of_run: HashMap<&'a str, Vec<usize>>,
    /// By their beginning.
    pub(crate) faults: Vec<Fault<'a>>,
    pub(crate) workers: HashMap<&'a str, Worker>,
    /// When everything was told to heal.
    pub(crate) healed: Option<u64>,
    /// Whether the store may lose what it acknowledged, when it is killed or loses its power.
    may_lose: bool,
    /// ns that the wall clock is ahead of the monotonic one.
    ahead: i128,
}

/// One call of a node's function.
#[derive(Debug, Clone)]
pub(crate) struct Execution<'a> {
    pub(crate) process: &'a str,
    pub(crate) run: &'a str,
    pub(crate) node: &'a str,
    pub(crate) visit: u64,
    pub(crate) attempt: u64,
    pub(crate) epoch: i64,
    pub(crate) nonce: &'a str,
    pub(crate) begin: u64,
    pub(crate) end: End,
}

/// How an execution ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Its function returned.
    Returned(u64),
    /// Its function failed or was dropped, and said so.
    Failed(u64),
    /// Its owner parked, put off or ended the run.
    Suspended(u64),
    /// Its process was killed.
    Killed(u64),
    /// Nobody saw it; its process was seen alive until then.
    Unseen(u64),
}

impl End {
    pub(crate) const fn at(self) -> u64 {
        match self {
            Self::Returned(at)
            | Self::Failed(at)
            | Self::Suspended(at)
            | Self::Killed(at)
            | Self::Unseen(at) => at,
        }
    }
}

impl<'a> Execution<'a> {
    pub(crate) const fn pair(&self) -> (i64, &'a str) {
        (self.epoch, self.nonce)
    }

    /// The place, for people.
    pub(crate) fn place(&self) -> String {
        let Self { run, node, visit, attempt, epoch, process, .. } = self;
        format!("{run} {node}#{visit}, attempt {attempt}, under epoch {epoch} in {process}")
    }
}

/// One fault, from its beginning to its end (or for ever).
#[derive(Debug)]
pub(crate) struct Fault<'a> {
    pub(crate) kind: &'a str,
    pub(crate) target: &'a str,
    pub(crate) begin: u64,
    pub(crate) end: u64,
}

/// A process of a worker.
#[derive(Debug, Default)]
pub(crate) struct Worker {
    /// When it began.
    pub(crate) begin: u64,
    /// Its last sign of life.
    pub(crate) last: u64,
    /// Names by which the injector may call it.
    names: Vec<String>,
    /// When it was killed.
    pub(crate) killed: Option<u64>,
    /// Whether its supervisor was killed with it.
    pub(crate) with_machine: bool,
    /// When it said that it ends.
    pub(crate) stopped: Option<u64>,
}

impl<'a> Facts<'a> {
    pub(crate) fn new(history: &'a History, dump: &'a Dump, may_lose: bool) -> Self {
        let ahead = history
            .lines
            .first()
            .map_or(0, |line| i128::from(line.wall) * i128::from(MS) - i128::from(line.mono));
        let mut facts = Self {
            history,
            dump,
            runs: dump.runs.iter().map(|run| (run.run.as_str(), run)).collect(),
            executions: Vec::new(),
            of_run: HashMap::new(),
            faults: faults(history),
            workers: workers(history),
            healed: None,
            may_lose,
            ahead,
        };
        let is_heal = |line: &&Line| line.op == Op::Fault && line.code_text() == fault::HEAL;
        facts.healed = history.lines.iter().filter(is_heal).map(|line| line.mono).max();
        facts.kill();
        facts.executions = facts.executions();
        for (at, execution) in facts.executions.iter().enumerate() {
            facts.of_run.entry(execution.run).or_default().push(at);
        }
        facts
    }

    /// A wall time in ms as a monotonic one.
    pub(crate) fn mono(&self, wall_ms: i64) -> u64 {
        let at = i128::from(wall_ms) * i128::from(MS) - self.ahead;
        u64::try_from(at.max(0)).unwrap_or(u64::MAX)
    }

    /// The executions of a run, by their beginning.
    pub(crate) fn executions_of(&self, run: &str) -> impl Iterator<Item = &Execution<'a>> {
        let places = self.of_run.get(run).into_iter().flatten();
        places.filter_map(|at| self.executions.get(*at))
    }

    /// The first fault from then on that may take what a store holds.
    pub(crate) fn next_loss(&self, at: u64) -> Option<&Fault<'a>> {
        let takes = |kind: &str| kind == fault::STORE_KILL || kind == fault::POWER;
        self.faults.iter().find(|fault| takes(fault.kind) && fault.begin >= at)
    }

    /// Whether the store may have lost what it acknowledged then, and is allowed to.
    pub(crate) fn may_be_lost(&self, at: u64) -> bool {
        self.may_lose && self.next_loss(at).is_some()
    }

    /// Faults of these kinds that hit the process.
    pub(crate) fn hits(&self, kinds: &[&str], process: &str) -> impl Iterator<Item = &Fault<'a>> {
        let worker = self.workers.get(process);
        self.faults.iter().filter(move |fault| {
            kinds.contains(&fault.kind)
                && (fault.target == process
                    || worker.is_some_and(|worker| {
                        worker.names.iter().any(|name| name == fault.target)
                            && worker.begin <= fault.end
                            && fault.begin <= worker.killed.unwrap_or(u64::MAX)
                    }))
        })
    }

    /// How often the injector did this.
    pub(crate) fn times(&self, kind: &str) -> u64 {
        self.faults.iter().filter(|fault| fault.kind == kind).count() as u64
    }

    /// Notes which process each kill hit: of those with the name, the one that began last.
    fn kill(&mut self) {
        let mut named: HashMap<String, Vec<&str>> = HashMap::new();
        for (process, worker) in &self.workers {
            for name in worker.names.iter().map(String::as_str).chain([*process]) {
                named.entry(name.to_owned()).or_default().push(process);
            }
        }
        for fault in &self.faults {
            if fault.kind != fault::KILL && fault.kind != fault::MACHINE {
                continue;
            }
            let lives = |process: &&&str| {
                let worker = self.workers.get(**process);
                worker.is_some_and(|w| w.begin <= fault.begin && w.killed.is_none())
            };
            let processes = named.get(fault.target).into_iter().flatten().filter(lives);
            let newest = processes.max_by_key(|p| self.workers.get(**p).map(|w| w.begin)).copied();
            if let Some(worker) = newest.and_then(|process| self.workers.get_mut(process)) {
                worker.killed = Some(fault.begin);
                worker.with_machine = fault.kind == fault::MACHINE;
            }
        }
    }

    fn executions(&self) -> Vec<Execution<'a>> {
        let mut found: Vec<Execution<'a>> = Vec::new();
        let mut open: HashMap<_, usize> = HashMap::new();
        for line in self.history.lines.iter().filter(|line| line.op == Op::Node) {
            let execution = Execution {
                process: &line.process,
                run: line.run.as_deref().unwrap_or_default(),
                node: line.node.as_deref().unwrap_or_default(),
                visit: line.visit.unwrap_or(0),
                attempt: line.attempt.unwrap_or(0),
                epoch: line.epoch.unwrap_or(0),
                nonce: line.nonce.as_deref().unwrap_or_default(),
                begin: line.mono,
                end: End::Unseen(line.mono),
            };
            let Execution { process, run, node, visit, .. } = execution;
            let key = (process, run, node, visit, execution.pair());
            let at = match line.phase {
                Phase::Invoke => {
                    open.insert(key, found.len());
                    found.push(execution);
                    continue;
                }
                Phase::Ok | Phase::Fail | Phase::Unknown => open.get(&key).copied(),
            };
            // An end without a beginning cannot be: both are lines of one process.
            let Some(execution) = at.and_then(|at| found.get_mut(at)) else { continue };
            execution.end = match line.phase {
                Phase::Ok => End::Returned(line.mono),
                Phase::Fail => End::Failed(line.mono),
                // Seen at work.
                Phase::Invoke | Phase::Unknown => End::Unseen(line.mono),
            };
        }
        let suspensions = self.suspensions();
        for execution in &mut found {
            if let End::Unseen(seen) = execution.end {
                execution.end = self.unseen(execution, seen, &suspensions);
            }
        }
        found
    }

    /// How an execution ended that did not say it.
    fn unseen(&self, execution: &Execution<'_>, seen: u64, suspensions: &Suspensions<'_>) -> End {
        let killed = self.workers.get(execution.process).and_then(|worker| worker.killed);
        let suspended = suspensions.get(&(execution.run, execution.epoch)).copied();
        match (suspended, killed) {
            (Some(at), _) => End::Suspended(at.max(seen)),
            (None, Some(at)) => End::Killed(at.max(seen)),
            (None, None) => End::Unseen(seen),
        }
    }

    /// When owners gave their run out of the hand, by their own events.
    fn suspensions(&self) -> Suspensions<'a> {
        let mut found = BTreeMap::new();
        for run in &self.dump.runs {
            for event in run.events.iter().filter(|event| event.epoch != 0) {
                if ends_ownership(&event.event) {
                    let epoch = i64::try_from(event.epoch).unwrap_or(i64::MAX);
                    found.insert((run.run.as_str(), epoch), self.mono(event.at_ms));
                }
            }
        }
        found
    }
}

type Suspensions<'a> = BTreeMap<(&'a str, i64), u64>;

const fn ends_ownership(event: &Event) -> bool {
    matches!(
        event,
        Event::RunParked { .. }
            | Event::RunRescheduled { .. }
            | Event::RunCompleted
            | Event::RunFailed { .. }
            | Event::RunCancelled { .. }
    )
}

impl Line {
    pub(crate) fn code_text(&self) -> &str {
        self.code.as_deref().unwrap_or_default()
    }
}

fn faults(history: &History) -> Vec<Fault<'_>> {
    let mut found: Vec<Fault<'_>> = Vec::new();
    for line in history.lines.iter().filter(|line| line.op == Op::Fault) {
        let (kind, target) = (line.code_text(), line.id.as_str());
        match line.phase {
            Phase::Invoke => {
                found.push(Fault { kind, target, begin: line.mono, end: u64::MAX });
            }
            Phase::Ok | Phase::Fail | Phase::Unknown => {
                let is_it = |fault: &&mut Fault<'_>| fault.kind == kind && fault.target == target;
                let open = found.iter_mut().rev().filter(is_it).find(|f| f.end == u64::MAX);
                if let Some(fault) = open {
                    fault.end = line.mono;
                }
            }
        }
    }
    found
}

fn workers(history: &History) -> HashMap<&str, Worker> {
    let mut found: HashMap<&str, Worker> = HashMap::new();
    for line in &history.lines {
        if line.op != Op::Node && line.op != Op::Worker {
            continue;
        }
        let worker = found
            .entry(line.process.as_str())
            .or_insert_with(|| Worker { begin: line.mono, ..Worker::default() });
        worker.last = line.mono;
        if line.op != Op::Worker {
            continue;
        }
        match line.code_text() {
            "start" => {
                let detail = line.detail.as_ref();
                let pid = detail.and_then(|detail| detail.get("pid")?.as_u64());
                let slot = detail.and_then(|detail| detail.get("slot")?.as_str());
                worker.names.extend(pid.map(|pid| format!("pid-{pid}")));
                worker.names.extend(slot.map(str::to_owned));
            }
            "stop" => worker.stopped = Some(line.mono),
            _ => {}
        }
    }
    found
}
