//! Stores in known states, and what is in them to the last byte.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use holdpoint::{Location, Namespace, RedisConfig, RedisStore, SqliteConfig, SqliteStore, Store};
use holdpoint_testkit::{Finished, Program, RedisServer, Scratch};
use rusqlite::{Connection, types::Value as Cell};
use serde_json::Value;

/// How long a command may take before the walk gives up on it.
const COMMAND: Duration = Duration::from_secs(60);

/// The runs of a prepared place.
const RUNS: &str = r#"
{"run": "done", "graph": "lin"}
{"run": "parked", "graph": "ask", "session": "busy", "key": "taken"}
{"run": "answered", "graph": "ask", "session": "other"}
{"run": "two", "graph": "ask2p", "session": "pair"}
{"run": "again", "graph": "askloop"}
{"run": "open", "graph": "ask_in"}
{"run": "open-false", "graph": "ask_in"}
{"run": "open-text", "graph": "ask_in"}
{"run": "open-object", "graph": "ask_in"}
{"run": "failed", "graph": "broken"}
{"run": "odd", "graph": "lin", "input": {"k\u001b[2J": "\u202eabc\u0000\r\n\u001b]8;;http://x\u0007link"}}
{"run": "later", "graph": "lin", "delay": "1h"}
{"run": "cancelled", "graph": "lin", "delay": "1h"}
"#;

/// A store of its own, and what the rows may name of it.
pub(crate) struct Place {
    pub(crate) name: &'static str,
    pub(crate) scratch: Scratch,
    pub(crate) redis: Option<RedisServer>,
    /// Values for `$NAME` in the arguments of rows.
    pub(crate) names: BTreeMap<&'static str, String>,
}

impl Place {
    pub(crate) fn sqlite(name: &'static str) -> Self {
        Self { name, scratch: Scratch::new(), redis: None, names: BTreeMap::new() }
    }

    pub(crate) fn redis(name: &'static str) -> Self {
        let redis = Some(RedisServer::start());
        Self { name, scratch: Scratch::new(), redis, names: BTreeMap::new() }
    }

    pub(crate) fn url(&self) -> String {
        self.redis.as_ref().map_or_else(|| self.scratch.sqlite_url(), RedisServer::url)
    }

    /// The fixtures program on this store.
    pub(crate) fn program(&self) -> Program {
        self.on_this(Program::example("fixtures"))
    }

    /// The program with this store in its environment.
    pub(crate) fn on_this(&self, program: Program) -> Program {
        program
            .current_dir(self.scratch.path())
            .env("HOLDPOINT_STORE", self.url())
            .env("HOLDPOINT_LEDGER", self.scratch.ledger().path())
    }

    /// Runs a command that must end well.
    pub(crate) fn good(&self, args: &[&str]) -> Finished {
        self.program().arg("--json").args(args).run(COMMAND).expect_code(0)
    }

    pub(crate) fn json(&self, args: &[&str]) -> Value {
        self.good(args).json()
    }

    /// Works until nothing is left to do.
    pub(crate) fn work(&self) {
        drop(self.good(&["worker", "--exit-when-idle", "--no-supervisor"]));
    }

    /// Runs in all states, a busy session, a key, and a worker that published its graphs.
    pub(crate) fn prepare(&mut self) {
        let place = &*self;
        let enqueue = ["--json", "enqueue", "--allow-unknown", "--batch", "-"];
        drop(place.program().args(enqueue).stdin(RUNS).run(COMMAND).expect_code(0));
        drop(place.good(&["--namespace", "other", "enqueue", "lin", "--allow-unknown"]));
        drop(place.good(&["runs", "cancel", "cancelled"]));
        place.work();
        let question = |run: &str| {
            let view = place.json(&["runs", "show", run]);
            view["interrupts"][0]["interrupt"].as_str().unwrap().to_owned()
        };
        let (answered, again) = (question("answered"), question("again"));
        let yes = ["approve", "answered", "--by", "ann", "--key", "click"];
        drop(place.good(&yes));
        drop(place.good(&["signal", "again", "--answer", "\"again\""]));
        place.work();
        let view = place.json(&["runs", "show", "parked"]);
        let hash = view["interrupts"][0]["args_hash"].as_str().unwrap().to_owned();
        self.names.extend([("ANSWERED", answered), ("CLOSED", again), ("HASH", hash)]);
    }

    /// The store of this place in this process.
    pub(crate) async fn store_in(&self, namespace: &str) -> Arc<dyn Store> {
        let namespace = Namespace::new(namespace).unwrap();
        if let Some(redis) = &self.redis {
            let config = RedisConfig::new(redis.url(), namespace);
            return Arc::new(RedisStore::connect(config).await.unwrap());
        }
        let file = Location::File(self.scratch.file("holdpoint.db"));
        Arc::new(SqliteStore::open(SqliteConfig::new(file, namespace)).await.unwrap())
    }

    /// Holds the lock of a file as another process that writes would, until it is dropped.
    pub(crate) fn lock(&self) -> Connection {
        let conn = Connection::open(self.scratch.file("holdpoint.db")).unwrap();
        conn.execute_batch("BEGIN IMMEDIATE").unwrap();
        conn
    }

    /// Everything that is stored.
    pub(crate) fn dump(&self) -> String {
        match &self.redis {
            Some(redis) => dump_of_redis(redis),
            None => dump_of_sqlite(&self.scratch),
        }
    }
}

/// Each key with its serialised value, in order.
fn dump_of_redis(redis: &RedisServer) -> String {
    const SCRIPT: &str = "local keys = redis.call('KEYS', '*') table.sort(keys) \
        local out = {} for i, key in ipairs(keys) do \
        out[i] = key .. ' ' .. redis.sha1hex(redis.call('DUMP', key)) end \
        return table.concat(out, '\\n')";
    redis.cli(&["EVAL", SCRIPT, "0"])
}

/// Each row of each table. The file's bytes also change when the write-ahead log is folded in.
fn dump_of_sqlite(scratch: &Scratch) -> String {
    let conn = Connection::open(scratch.file("holdpoint.db")).unwrap();
    let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name";
    let mut tables = conn.prepare(tables).unwrap();
    let tables: Vec<String> =
        tables.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect();
    let mut dump = String::new();
    for table in tables {
        let mut all = conn.prepare(&format!("SELECT * FROM \"{table}\"")).unwrap();
        let columns = all.column_count();
        let mut lines: Vec<String> = all
            .query_map([], |row| {
                let cells = (0..columns).map(|at| row.get::<_, Cell>(at));
                Ok(format!("{table} {:?}\n", cells.collect::<Result<Vec<_>, _>>()?))
            })
            .unwrap()
            .map(Result::unwrap)
            .collect();
        lines.sort_unstable();
        dump.extend(lines);
    }
    dump
}
