//! One case: a process crashes at a point, another one ends what it began, and everything is
//! compared.

use std::{os::unix::process::ExitStatusExt as _, time::Duration};

use holdpoint::{RunId, RunRequest};
use holdpoint_testkit::{CrashAction, Process, until, until_async};

use crate::{
    checks,
    graph::{GRAPH, Version},
    program::LISTENS,
    stage::{Backend, Crashing, LONG, Stage},
    table::{End, ROWS, Row, Way},
};

/// The runs that an operator prunes, or moves.
const OTHERS: usize = 3;
/// Far longer than a process takes from its last write to its point.
const SOON: Duration = Duration::from_secs(20);
/// SIGABRT.
const ABORTED: i32 = 6;

/// A case.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Case {
    pub(crate) row: Row,
    pub(crate) action: CrashAction,
    pub(crate) backend: Backend,
}

impl Case {
    /// All of them.
    pub(crate) fn all() -> Vec<Self> {
        let mut cases = Vec::new();
        // The slowest first.
        for action in [CrashAction::Sleep, CrashAction::Abort, CrashAction::Error] {
            for row in ROWS {
                cases.extend(Backend::ALL.map(|backend| Self { row, action, backend }));
            }
        }
        cases
    }

    /// The name by which it can be played alone.
    pub(crate) fn name(&self) -> String {
        format!("{}/{}/{}", self.backend.as_str(), self.row.point, self.action.as_str())
    }

    /// Plays the case. Answers how often the store refused the one who crashed.
    pub(crate) async fn play(&self) -> usize {
        let stage = Stage::new(self.backend).await;
        let end = self.row.end(self.action);
        let mut play = Play { case: *self, stage: &stage, end, helpers: Vec::new() };
        let (mut crashing, mut runs) = play.begin().await;
        play.until_hit(&crashing, &runs).await;
        if self.row.is_repeated() && self.action == CrashAction::Error {
            assert!(crashing.repeats().await, "a repeat was not told what the call had done");
        }
        if self.action == CrashAction::Abort {
            let status = crashing.process.wait(LONG);
            assert_eq!(status.signal(), Some(ABORTED), "{status}: {}", crashing.process.stderr());
        }
        play.go_on(&mut crashing, &mut runs).await;
        for run in &runs {
            stage.until_ended(run, end).await;
        }
        let fenced = play.finish(crashing).await;
        let version = if self.row.way == Way::Migrate { Version::Two } else { Version::One };
        checks::check(&stage, &runs, version).await;
        fenced
    }
}

/// A case that is being played.
struct Play<'a> {
    case: Case,
    stage: &'a Stage,
    end: End,
    /// Processes that nothing happens to.
    helpers: Vec<Process>,
}

impl Play<'_> {
    fn crash(&self, role: &str) -> Crashing {
        self.stage.crashing(role, &self.case.row, self.case.action)
    }

    fn help(&mut self, role: &str) {
        self.helpers.push(self.stage.clean(role).spawn());
    }

    /// Sets the stage, and starts the process that crashes.
    async fn begin(&mut self) -> (Crashing, Vec<RunId>) {
        let stage = self.stage;
        match self.case.row.way {
            Way::Enqueue => (self.crash("enqueue"), Vec::new()),
            Way::Work => {
                let run = stage.enqueue().await;
                (self.crash("worker 1"), vec![run])
            }
            Way::Reap => {
                let run = stage.enqueue().await;
                self.lose_a_worker().await;
                (self.crash("worker 1"), vec![run])
            }
            Way::Signal => {
                let run = stage.enqueue().await;
                self.help("worker 1");
                stage.until_parked(&run).await;
                (self.crash(&format!("signal {run}")), vec![run])
            }
            Way::Prune => {
                let run = stage.enqueue().await;
                self.help("worker 1");
                stage.until_parked(&run).await;
                self.end_others().await;
                (self.crash("prune"), vec![run])
            }
            Way::Migrate => {
                let runs = self.park_several().await;
                let names: Vec<&str> = runs.iter().map(RunId::as_str).collect();
                (self.crash(&format!("migrate {}", names.join(" "))), runs)
            }
        }
    }

    /// A worker dies in a node.
    async fn lose_a_worker(&self) {
        let victim = self.stage.clean("worker 1").env("HOLDPOINT_CRASH", "node.in:3");
        let status = victim.env("HOLDPOINT_CRASH_ACTION", "abort").spawn().wait(LONG);
        assert_eq!(status.signal(), Some(ABORTED), "{status}");
    }

    /// Runs that have ended.
    async fn end_others(&self) {
        for _ in 0..OTHERS {
            let later = RunRequest::new(GRAPH).delay(Duration::from_secs(3_600)).allow_unknown();
            let run = self.stage.producer.enqueue(&later).await.expect("a run is taken").run;
            self.stage.producer.cancel(&run, "driver").await.expect("a run is cancelled");
        }
    }

    /// Several runs of the first version that are parked and that nobody works on.
    async fn park_several(&mut self) -> Vec<RunId> {
        let mut worker = self.stage.clean("worker 1").spawn();
        let mut runs = vec![self.stage.enqueue().await];
        for _ in 1..OTHERS {
            let request = RunRequest::new(GRAPH).allow_unknown();
            runs.push(self.stage.producer.enqueue(&request).await.expect("a run is taken").run);
        }
        for run in &runs {
            self.stage.until_parked(run).await;
        }
        end_worker(&mut worker);
        runs
    }

    /// Waits until the process has come to its point. Nothing else happens at any point.
    async fn until_hit(&self, crashing: &Crashing, runs: &[RunId]) {
        until_async(&format!("the point {}", self.case.row.point), LONG, async || {
            if crashing.has_hit() {
                return Some(());
            }
            if matches!(self.case.row.way, Way::Work | Way::Reap) {
                for run in runs {
                    if self.stage.attend(run, self.end).await {
                        // It is there at once, or never.
                        let what = self.stage.told(run).await;
                        until_async(&what, SOON, async || crashing.has_hit().then_some(())).await;
                    }
                }
            }
            None
        })
        .await;
    }

    /// What others do when one has crashed.
    async fn go_on(&mut self, crashing: &mut Crashing, runs: &mut Vec<RunId>) {
        match self.case.row.way {
            Way::Enqueue => {
                runs.push(self.stage.enqueue().await);
                self.help("worker 1");
            }
            Way::Work | Way::Reap => self.help("worker 1"),
            Way::Signal => {}
            Way::Prune => {
                drop(self.stage.clean("prune").run(LONG).expect_code(0));
                // It would prune the run too, when that has ended.
                if self.case.action == CrashAction::Sleep {
                    crashing.wake().await;
                }
                crashing.process.wait(LONG);
            }
            Way::Migrate => {
                let names: Vec<&str> = runs.iter().map(RunId::as_str).collect();
                let role = format!("migrate {}", names.join(" "));
                drop(self.stage.clean(&role).run(LONG).expect_code(0));
                self.help("worker 2");
            }
        }
    }

    /// Wakes who sleeps, and ends all processes in order. Answers how often the store refused it.
    async fn finish(&mut self, mut crashing: Crashing) -> usize {
        let Case { row, action, .. } = self.case;
        if action == CrashAction::Sleep {
            crashing.wake().await;
        }
        let is_worker = matches!(row.way, Way::Work | Way::Reap);
        if is_worker && action != CrashAction::Abort {
            end_worker(&mut crashing.process);
        }
        if action != CrashAction::Abort {
            let status = crashing.process.wait(LONG);
            // Who comes too late with a call of its own may be told so.
            let is_late = action == CrashAction::Sleep && !is_worker;
            let said = crashing.process.stderr();
            assert!(status.success() || is_late && status.code() == Some(1), "{status}: {said}");
        }
        for helper in &mut self.helpers {
            end_worker(helper);
        }
        let fenced = crashing.fenced();
        if row.is_late_write && action == CrashAction::Sleep {
            assert!(fenced > 0, "the late write was not refused");
        }
        fenced
    }
}

/// Tells a worker to end, as soon as it listens, and waits for that.
pub(crate) fn end_worker(worker: &mut Process) {
    until("the worker to listen", LONG, || worker.stdout().contains(LISTENS).then_some(()));
    worker.sigterm();
    assert_eq!(worker.wait(LONG).code(), Some(0), "{}", worker.stderr());
}
