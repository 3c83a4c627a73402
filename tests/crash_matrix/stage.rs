//! A store of the case's own, a ledger, and the one who watches and answers.

use std::{path::PathBuf, sync::Arc, time::Duration};

use holdpoint::{Producer, RunId, RunStatus, SignalOptions, Store};
use holdpoint_testkit::{CrashAction, Process, Program, RedisServer, Scratch, until_async};
use serde_json::json;

use crate::{
    program::{self, program},
    table::{End, Row},
};

/// Longer than anything here takes on a busy machine.
pub(crate) const LONG: Duration = Duration::from_secs(120);

/// Which store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backend {
    Sqlite,
    Redis,
}

impl Backend {
    pub(crate) const ALL: [Self; 2] = [Self::Sqlite, Self::Redis];

    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Redis => "redis",
        }
    }
}

/// A store, a ledger and the one who watches.
pub(crate) struct Stage {
    pub(crate) scratch: Scratch,
    pub(crate) redis: Option<RedisServer>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) producer: Producer,
}

impl Stage {
    pub(crate) async fn new(backend: Backend) -> Self {
        let scratch = Scratch::new();
        let redis = (backend == Backend::Redis).then(RedisServer::start);
        let url = redis.as_ref().map_or_else(|| scratch.sqlite_url(), RedisServer::url);
        let store = program::open(&url).await.expect("a new store opens");
        let producer = Producer::new(Arc::clone(&store));
        Self { scratch, redis, store, producer }
    }

    /// The program in a role that nothing happens to.
    pub(crate) fn clean(&self, role: &str) -> Program {
        let url = self.redis.as_ref().map_or_else(|| self.scratch.sqlite_url(), RedisServer::url);
        program(role, &url).env("HOLDPOINT_LEDGER", self.scratch.ledger().path())
    }

    /// The program in a role in which it crashes at a point.
    pub(crate) fn crashing(&self, role: &str, row: &Row, action: CrashAction) -> Crashing {
        let log = self.scratch.file("crash.log");
        let program = self
            .clean(role)
            .env("HOLDPOINT_CRASH", format!("{}:{}", row.point, row.nth))
            .env("HOLDPOINT_CRASH_ACTION", action.as_str())
            .env("HOLDPOINT_CRASH_LOG", &log);
        Crashing { process: program.spawn(), log, point: row.point }
    }

    /// Enqueues the run, as its producer would again and again until it is told that it is there.
    pub(crate) async fn enqueue(&self) -> RunId {
        self.producer.enqueue(&program::request()).await.expect("the store takes the run").run
    }

    pub(crate) async fn status(&self, run: &RunId) -> RunStatus {
        self.store.head(run).await.expect("the store answers").expect("the run is there").status()
    }

    /// Waits until the run is parked at its gate.
    pub(crate) async fn until_parked(&self, run: &RunId) {
        until_async("the run to park", LONG, async || {
            (self.status(run).await == RunStatus::Parked).then_some(())
        })
        .await;
    }

    /// Waits until the run has ended as it must; answers what it asks until then.
    pub(crate) async fn until_ended(&self, run: &RunId, end: End) {
        until_async(&format!("the run {run} to end"), LONG, async || {
            self.attend(run, end).await.then_some(())
        })
        .await;
    }

    /// Does what the run waits for. Says whether it has ended.
    pub(crate) async fn attend(&self, run: &RunId, end: End) -> bool {
        match self.status(run).await {
            RunStatus::Parked => self.answer(run).await,
            RunStatus::Failed if end == End::Redriven => {
                self.producer.redrive(run, None, "driver").await.expect("a failed run is redriven");
            }
            RunStatus::Failed => panic!("it failed: {:?}", self.producer.get(run).await),
            RunStatus::Completed => return true,
            RunStatus::Cancelled => panic!("nobody cancels the run"),
            RunStatus::Scheduled | RunStatus::Queued | RunStatus::Running => {}
        }
        false
    }

    /// The run's journal, for a message.
    pub(crate) async fn told(&self, run: &RunId) -> String {
        let events = self.producer.events(run, 0).await.expect("the journal can be read");
        let lines = events.iter().map(|event| serde_json::to_string(event).unwrap_or_default());
        format!("the point of a run that has ended:\n{}", lines.collect::<Vec<_>>().join("\n"))
    }

    /// Answers every open question: the gate with a yes, an uncertain payment with its result.
    /// Somebody else may be quicker; which answer counts is in the journal.
    async fn answer(&self, run: &RunId) {
        let view = self.producer.get(run).await.expect("the run can be read");
        for open in view.interrupts {
            let options = SignalOptions::run(run.as_str()).by("driver");
            let options = match &open.gate {
                Some(_) => options.approve(),
                None => options.answer(json!({ "result": { "path": ["pay"] } })),
            };
            let said = self.producer.signal(&options.interrupt(open.interrupt.as_str())).await;
            if let Err(error) = said {
                eprintln!("the answer was not taken: {error}");
            }
        }
    }
}

/// A process that crashes at a point.
pub(crate) struct Crashing {
    pub(crate) process: Process,
    log: PathBuf,
    point: &'static str,
}

impl Crashing {
    fn log(&self) -> Vec<String> {
        let text = std::fs::read_to_string(&self.log).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn has_said(&self, what: &str) -> bool {
        self.log().contains(&format!("{what} {}", self.point))
    }

    /// Whether the process came to the point.
    pub(crate) fn has_hit(&self) -> bool {
        self.has_said("hit")
    }

    /// Wakes the process that sleeps, and waits until it is awake.
    pub(crate) async fn wake(&self) {
        std::fs::write(self.log.with_added_extension("wake"), "").expect("a new file");
        until_async("the sleeper to wake", LONG, async || self.has_said("woke").then_some(()))
            .await;
    }

    /// Waits until the process repeats the call whose reply was lost; whether it was told what
    /// that had done.
    pub(crate) async fn repeats(&self) -> bool {
        let repeated = async || self.log().into_iter().find(|line| line.starts_with("repeated "));
        until_async("the repeat", LONG, repeated).await == "repeated done"
    }

    /// How many late writes of the process the store refused; a renewal is none.
    pub(crate) fn fenced(&self) -> usize {
        let is_write = |line: &&String| *line == "fenced commit" || *line == "fenced release";
        self.log().iter().filter(is_write).count()
    }
}
