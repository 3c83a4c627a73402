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

    /// Changes what is stored behind the store's back: by commands whose second word is a key
    /// without its prefix, or by statements.
    pub(crate) fn behind(&self, commands: &[&[&str]], sql: &str) {
        let Some(redis) = &self.redis else {
            self.file().execute_batch(sql).unwrap();
            return;
        };
        let meta = redis.cli(&["--scan", "--pattern", "hp:*:meta"]);
        for command in commands {
            let key = meta.replace("meta", command[1]);
            redis.cli(&[&[command[0], &key], &command[2..]].concat());
        }
    }

    /// All that is stored of runs and counts.
    pub(crate) fn behind_dump(&self) -> String {
        if let Some(redis) = &self.redis {
            return dump_of(redis);
        }
        let file = self.file();
        let rows = |table: &str| {
            let mut rows = file.prepare(&format!("SELECT * FROM {table}")).unwrap();
            let columns = rows.column_count();
            let text = |row: &rusqlite::Row<'_>| {
                let value = |at| row.get::<_, rusqlite::types::Value>(at);
                (0..columns).map(value).collect::<Result<Vec<_>, _>>().map(|row| format!("{row:?}"))
            };
            rows.query_map([], text).unwrap().map(Result::unwrap).collect::<String>()
        };
        rows("runs") + &rows("counts")
    }

    fn file(&self) -> rusqlite::Connection {
        let url = self.scratch.sqlite_url();
        let path = url.strip_prefix("sqlite:").unwrap();
        rusqlite::Connection::open(path.split('?').next().unwrap()).unwrap()
    }
}

/// Each key with its serialised value, in order. Who was connected when is not part of it.
fn dump_of(redis: &RedisServer) -> String {
    let keys = redis.cli(&["--scan"]);
    let mut keys: Vec<&str> = keys.lines().collect();
    keys.sort_unstable();
    keys.iter().map(|key| format!("{key} {}\n", redis.cli(&["DUMP", key]))).collect()
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
