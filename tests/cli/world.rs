//! A store, a ledger and the fixtures program, new for each test.

use std::time::Duration;

use holdpoint_testkit::{Finished, Ledger, Process, Program, RedisServer, Scratch, until};
use serde_json::Value;

/// How long a one-shot command may take; far more than it needs, for a busy machine.
pub(crate) const ONE_SHOT: Duration = Duration::from_secs(20);
/// How long runs may take.
pub(crate) const RUNS: Duration = Duration::from_secs(60);

/// A store, a ledger and the fixtures program.
pub(crate) struct World {
    scratch: Scratch,
    redis: Option<RedisServer>,
}

impl World {
    /// On an embedded store.
    pub(crate) fn sqlite() -> Self {
        Self { scratch: Scratch::new(), redis: None }
    }

    /// On a Redis of its own.
    pub(crate) fn redis() -> Self {
        Self { scratch: Scratch::new(), redis: Some(RedisServer::start()) }
    }

    pub(crate) fn scratch(&self) -> &Scratch {
        &self.scratch
    }

    pub(crate) fn url(&self) -> String {
        self.redis.as_ref().map_or_else(|| self.scratch.sqlite_url(), RedisServer::url)
    }

    pub(crate) fn ledger(&self) -> Ledger {
        self.scratch.ledger()
    }

    /// The fixtures program on this store.
    pub(crate) fn program(&self) -> Program {
        Program::example("fixtures")
            .current_dir(self.scratch.path())
            .env("HOLDPOINT_STORE", self.url())
            .env("HOLDPOINT_LEDGER", self.ledger().path())
    }

    /// Runs a command with `--json` to its end.
    pub(crate) fn call(&self, args: &[&str]) -> Finished {
        self.program().arg("--json").args(args).run(ONE_SHOT)
    }

    /// Runs a command that must end with 0 and print one document.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        self.call(args).expect_code(0).json()
    }

    /// Runs a command that must end with 0 and print documents.
    pub(crate) fn lines(&self, args: &[&str]) -> Vec<Value> {
        self.call(args).expect_code(0).json_lines()
    }

    /// Enqueues a run of a graph, whether its graph is known or not.
    pub(crate) fn enqueue(&self, graph: &str, input: &str) -> String {
        let args = ["enqueue", graph, "--input", input, "--allow-unknown"];
        text(&self.json(&args), "run")
    }

    /// Works until nothing is left to do.
    pub(crate) fn work(&self) {
        drop(self.program().args(["worker", "--exit-when-idle"]).run(RUNS).expect_code(0));
    }

    /// Starts a worker.
    pub(crate) fn worker(&self, args: &[&str]) -> Process {
        self.program().arg("worker").args(args).spawn()
    }

    pub(crate) fn show(&self, run: &str) -> Value {
        self.json(&["runs", "show", run])
    }

    /// Waits until a run has this state.
    pub(crate) fn until_status(&self, run: &str, status: &str) -> Value {
        until(&format!("run {run} to be {status}"), RUNS, || {
            let view = self.show(run);
            (view["status"] == status).then_some(view)
        })
    }

    /// Waits until a node has started in a run.
    pub(crate) fn until_started(&self, run: &str, node: &str) {
        until(&format!("{node} to start"), RUNS, || {
            (self.ledger().count(run, node, "start") > 0).then_some(())
        });
    }

    /// The path of a run's nodes, as its state tells it.
    pub(crate) fn path(&self, run: &str) -> Vec<String> {
        let view = self.show(run);
        let path = view["state"]["path"].as_array().cloned().unwrap_or_default();
        path.iter().map(|node| node.as_str().unwrap().to_owned()).collect()
    }

    /// The one open question of a run.
    pub(crate) fn question(&self, run: &str) -> String {
        let view = self.show(run);
        let open = view["interrupts"].as_array().unwrap();
        assert_eq!(open.len(), 1, "{view}");
        text(&open[0], "interrupt")
    }
}

/// Runs a test on each store.
pub(crate) fn on_each_store(test: impl Fn(&World)) {
    for world in [World::sqlite(), World::redis()] {
        test(&world);
    }
}

/// A text of an object.
pub(crate) fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("no text {name:?} in {value}")).to_owned()
}
