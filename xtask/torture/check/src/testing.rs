//! Hand-made histories and dumps for the tests of the checkers.

use holdpoint_graph::{Answer, Event, InterruptId, Outcome, Patch, Routing, TaskRef, WorkerId};
use serde_json::Value;

use crate::{
    Dump, EventDump, History, Line, Op, Phase, RunDump,
    facts::{Facts, MS},
};

/// The wall time of monotonic 0, in ms.
pub(crate) const WALL: i64 = 1_000_000;

/// A history and a dump in the making; its time is in ms from its beginning.
pub(crate) struct World {
    now: u64,
    pub(crate) history: History,
    pub(crate) dump: Dump,
    pub(crate) may_lose: bool,
}

impl World {
    pub(crate) fn new() -> Self {
        Self { now: 1, history: History::default(), dump: Dump::default(), may_lose: false }
    }

    /// What follows happens then.
    pub(crate) fn at(&mut self, ms: u64) -> &mut Self {
        self.now = ms;
        self
    }

    pub(crate) fn line(&mut self, process: &str, mut line: Line) -> &mut Self {
        line.mono = self.now * MS;
        line.wall = WALL + self.now as i64;
        line.process = process.to_owned();
        self.history.lines.push(line);
        self
    }

    pub(crate) fn enqueue(&mut self, run: &str, phase: Phase) -> &mut Self {
        self.line("producer", Line::now(Op::Enqueue, phase, run))
    }

    pub(crate) fn node(
        &mut self,
        worker: &str,
        (run, node, visit): (&str, &str, u64),
        epoch: i64,
        phase: Phase,
    ) -> &mut Self {
        let line = Line::now(Op::Node, phase, "").run(run).node(node, visit).attempt(1);
        self.line(worker, line.pair(epoch, format!("n{epoch}")))
    }

    pub(crate) fn fault(&mut self, target: &str, kind: &str, phase: Phase) -> &mut Self {
        self.line("injector", Line::now(Op::Fault, phase, target).code(kind))
    }

    pub(crate) fn worker(&mut self, worker: &str, code: &str) -> &mut Self {
        self.line(worker, Line::now(Op::Worker, Phase::Ok, "").code(code))
    }

    pub(crate) fn started(&mut self, worker: &str, detail: Value) -> &mut Self {
        self.line(worker, Line::now(Op::Worker, Phase::Ok, "").code("start").detail(detail))
    }

    pub(crate) fn has(&mut self, run: RunDump) -> &mut Self {
        self.dump.runs.push(run);
        self.dump.counted = self.dump.runs.len() as u64;
        self
    }

    pub(crate) fn facts(&self) -> Facts<'_> {
        Facts::new(&self.history, &self.dump, self.may_lose)
    }
}

/// A completed run without events.
pub(crate) fn run(id: &str) -> RunDump {
    RunDump {
        run: id.to_owned(),
        graph: "line".to_owned(),
        status: "completed".to_owned(),
        reason: None,
        interrupts: vec![],
        due_at_ms: None,
        seq: 0,
        epoch: 0,
        events: vec![],
        damage: None,
    }
}

impl RunDump {
    /// With an event of this epoch at time 0.
    pub(crate) fn event(self, epoch: u64, event: Event) -> Self {
        self.event_at(0, epoch, event)
    }

    /// With an event of this epoch at this ms.
    pub(crate) fn event_at(mut self, ms: i64, epoch: u64, event: Event) -> Self {
        self.events.push(EventDump { seq: self.seq, at_ms: WALL + ms, epoch, event });
        self.seq += 1;
        self.epoch = self.epoch.max(epoch);
        self
    }

    pub(crate) fn status(mut self, status: &str) -> Self {
        self.status = status.to_owned();
        self
    }
}

pub(crate) fn completed() -> Event {
    Event::RunCompleted
}

pub(crate) fn claimed(worker: &str, epoch: u64, at_ms: i64) -> Event {
    Event::Claimed { worker: WorkerId::new(worker).unwrap(), epoch, at_ms: WALL + at_ms }
}

/// The loss of a worker that claimed at the first time and was lost at the second.
pub(crate) fn lost(worker: &str, epoch: u64, (from, to): (i64, i64), evidence: &str) -> Event {
    Event::WorkerLost {
        worker: WorkerId::new(worker).unwrap(),
        epoch,
        claimed_at_ms: WALL + from,
        lost_at_ms: WALL + to,
        evidence: evidence.to_owned(),
    }
}

pub(crate) fn task(node: &str, visit: u32) -> TaskRef {
    TaskRef { node: node.to_owned(), visit, branch: vec![] }
}

pub(crate) fn done(node: &str, visit: u32) -> Event {
    Event::NodeCompleted {
        task: task(node, visit),
        patches: Vec::<Patch>::new(),
        next: Routing::To("__end__".to_owned()),
        counted: true,
    }
}

/// The opening of a question, at a gate if it has a name.
pub(crate) fn opened(id: &str, gate: Option<&str>) -> Event {
    let interrupt = serde_json::json!({
        "interrupt": id, "task": null, "gate": gate, "key": null, "kind": "gate",
        "question": "?", "schema": null, "allowed": [], "opened_at_ms": 0, "deadline_ms": null,
        "assignees": [], "args_hash": "",
    });
    Event::InterruptOpened { interrupt: serde_json::from_value(interrupt).unwrap() }
}

pub(crate) fn answered(id: &str, request: &str, outcome: Outcome) -> Event {
    let answer = Answer::new(Value::Null, "me", 0);
    let interrupt = InterruptId::new(id).unwrap();
    Event::InterruptAnswered { interrupt, answer, request: request.to_owned(), outcome }
}
