//! I19: whatever is changed in a stored event, snapshot or payload is noticed before any node
//! starts, and the run ends as one that cannot be read.
#![expect(clippy::unwrap_used, reason = "a failed call fails the test")]

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use holdpoint_executor::{
    Claimed, Control, ExecutorConfig, GraphSet, Outcome, QueuedExecutor, StoreTime,
};
use holdpoint_graph::{
    Gate, Namespace, NodeContext, NodeOptions, Question, ReasonCode, RunId, RunPayload, State,
    StateGraph, Update,
};
use holdpoint_storage::{
    Address, ClaimRequest, Clock as _, IfBusy, Lane, Level, NewRun, Random, SignalRecord,
    SignalRequest, Store, SystemClock, When, meaning_hash,
};
use holdpoint_storage_redis::{RedisConfig, RedisStore};
use holdpoint_storage_sqlite::{Location, SqliteConfig, SqliteStore, Synchronous};
use holdpoint_testkit::{Appendfsync, RedisServer};
use serde_json::json;
use tempfile::TempDir;

/// Damaged runs of each kind on each store.
const RUNS: usize = 200;

/// What is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Payload,
    Event,
    Snapshot,
}

/// A way behind the store's back.
enum Raw {
    Redis(Mutex<redis::Connection>, #[expect(dead_code, reason = "it lives")] RedisServer),
    Sqlite(Mutex<rusqlite::Connection>, #[expect(dead_code, reason = "it lives")] TempDir),
}

struct Bench {
    store: Arc<dyn Store>,
    raw: Raw,
    graphs: GraphSet,
    /// How often the node behind the gate ran.
    behind: Arc<AtomicUsize>,
}

fn namespace() -> Namespace {
    "test".parse().unwrap()
}

impl Bench {
    async fn redis() -> Self {
        let server = RedisServer::config().appendfsync(Appendfsync::Everysec).start();
        let store = RedisStore::connect(RedisConfig::new(server.url(), namespace())).await.unwrap();
        let client = redis::Client::open(format!("unix://{}", server.socket().display())).unwrap();
        let raw = Raw::Redis(Mutex::new(client.get_connection().unwrap()), server);
        Self::of(Arc::new(store), raw)
    }

    async fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("store.db");
        let config = SqliteConfig::new(Location::File(file.clone()), namespace());
        let config = SqliteConfig { synchronous: Synchronous::Normal, ..config };
        let store = SqliteStore::open(config).await.unwrap();
        let raw = Raw::Sqlite(Mutex::new(rusqlite::Connection::open(file).unwrap()), folder);
        Self::of(Arc::new(store), raw)
    }

    fn of(store: Arc<dyn Store>, raw: Raw) -> Self {
        let behind = Arc::new(AtomicUsize::new(0));
        let (counter, mut graphs) = (Arc::clone(&behind), GraphSet::new());
        let gate = NodeOptions::new().gate(Gate::new("gate", Question::new("Go on?")));
        let fill = |n: u8| {
            move |_: NodeContext, _: State| async move {
                Ok::<_, holdpoint_graph::NodeError>(Update::new().set("text", text(n)))
            }
        };
        let graph = StateGraph::new("flow")
            .add_node("a", fill(1))
            .add_node("b", fill(2))
            .add_node("c", fill(3))
            .add_node("d", fill(4))
            .add_node("e", fill(5))
            .add_node_with("z", gate, move |_: NodeContext, _: State| {
                counter.fetch_add(1, Ordering::SeqCst);
                async move { Ok::<_, holdpoint_graph::NodeError>(Update::new()) }
            })
            .add_edge("a", "b")
            .add_edge("b", "c")
            .add_edge("c", "d")
            .add_edge("d", "e")
            .add_edge("e", "z")
            .set_entry_point("a")
            .set_finish_point("z");
        graphs.add(graph.compile().unwrap());
        Self { store, raw, graphs, behind }
    }

    async fn enqueue(&self, number: usize, session: Option<&str>) -> RunId {
        let input = json!({ "number": number });
        let payload = RunPayload::new(State::from_json(input.clone()).unwrap());
        let new = NewRun {
            run: Random.run_id(0),
            request: Random.request_id(),
            graph: "flow".parse().unwrap(),
            fingerprint: None,
            queue: "default".parse().unwrap(),
            session: session.map(|session| session.parse().unwrap()),
            if_busy: IfBusy::Enqueue,
            payload: payload.encode(),
            payload_hash: meaning_hash(&input),
            priority: 4,
            start: When::In(0),
            expires: None,
            deadline: None,
            key: None,
            tags: Vec::new(),
            queue_depth_max: 1_000_000,
        };
        let run = new.run.clone();
        self.store.enqueue(&[new], false).await.unwrap();
        run
    }

    /// A run that stands at its gate, with a journal and a snapshot.
    async fn parked(&self, number: usize) -> RunId {
        let run = self.enqueue(number, None).await;
        assert_eq!(self.work().await, Some(Outcome::Parked));
        run
    }

    async fn answer(&self, run: &RunId) {
        let request = Random.request_id();
        let record = SignalRecord {
            groups: Vec::new(),
            from: None,
            answer: json!({ "approve": true }),
            by: "ann".to_owned(),
            at_ms: 0,
            comment: None,
            request: request.to_string(),
        };
        let request = SignalRequest {
            ballot: None,
            run: run.clone(),
            request,
            address: Address::Only,
            args_hash: None,
            record: record.encode(),
        };
        self.store.signal(&request).await.unwrap();
    }

    async fn work(&self) -> Option<Outcome> {
        let graph = self.graphs.iter().next().unwrap();
        let lane = |fingerprint| Lane {
            queue: "default".parse().unwrap(),
            graph: graph.id().clone(),
            fingerprint,
        };
        let config = ExecutorConfig::default();
        let request = ClaimRequest {
            worker: "w1".parse().unwrap(),
            nonce: Random.nonce(),
            lanes: vec![lane(None), lane(Some(graph.fingerprint().clone()))],
            max: 1,
            lease_ms: config.lease_ms(),
            oldest_first: false,
            bytes_max: 1 << 20,
        };
        let sent = SystemClock.monotonic();
        let claims = self.store.claim(&request).await.unwrap();
        let time = Arc::new(StoreTime::new(Arc::new(SystemClock), claims.now_ms));
        let run = claims.runs.into_iter().next()?;
        let claimed = Claimed { run, control: Control::new(sent + config.hold()), time };
        let executor = QueuedExecutor::new(Arc::clone(&self.store), Arc::new(self.graphs.clone()));
        Some(executor.with_config(config).execute(claimed).await)
    }

    /// The stored bytes of a part; of event `n`.
    fn stored(&self, run: &RunId, part: Part, n: u64) -> Vec<u8> {
        match &self.raw {
            Raw::Redis(conn, _) => {
                let conn = &mut *conn.lock().unwrap();
                let key = redis_key(conn, run, part);
                match part {
                    Part::Event => redis::cmd("LINDEX").arg(key).arg(n).query(conn).unwrap(),
                    Part::Payload | Part::Snapshot => {
                        redis::cmd("GET").arg(key).query(conn).unwrap()
                    }
                }
            }
            Raw::Sqlite(conn, _) => {
                let (table, row) = sqlite_row(part, n);
                let sql = format!("SELECT body FROM {table} WHERE run = {KEY} AND {row}");
                conn.lock().unwrap().query_row(&sql, [run.as_str()], |row| row.get(0)).unwrap()
            }
        }
    }

    fn overwrite(&self, run: &RunId, part: Part, n: u64, bytes: &[u8]) {
        match &self.raw {
            Raw::Redis(conn, _) => {
                let conn = &mut *conn.lock().unwrap();
                let key = redis_key(conn, run, part);
                match part {
                    Part::Event => redis::cmd("LSET").arg(key).arg(n).arg(bytes).exec(conn),
                    Part::Payload | Part::Snapshot => {
                        redis::cmd("SET").arg(key).arg(bytes).exec(conn)
                    }
                }
                .unwrap();
            }
            Raw::Sqlite(conn, _) => {
                let (table, row) = sqlite_row(part, n);
                let sql = format!("UPDATE {table} SET body = ?2 WHERE run = {KEY} AND {row}");
                let params = rusqlite::params![run.as_str(), bytes];
                assert_eq!(conn.lock().unwrap().execute(&sql, params).unwrap(), 1);
            }
        }
    }

    /// Answers the gate of a damaged run: the node behind it never starts.
    async fn is_refused(&self, run: &RunId, what: &str) {
        self.answer(run).await;
        let outcome = self.work().await;
        assert_eq!(outcome, Some(Outcome::Failed(ReasonCode::Undecodable)), "{what}");
        let head = self.store.head(run).await.unwrap().unwrap();
        assert_eq!(head.reason(), Some(ReasonCode::Undecodable), "{what}");
        assert_eq!(self.behind.load(Ordering::SeqCst), 0, "{what} was executed");
    }
}

fn text(n: u8) -> String {
    char::from(b'a' + n).to_string().repeat(3_000)
}

const KEY: &str = "(SELECT key FROM runs WHERE id = ?1)";

fn sqlite_row(part: Part, n: u64) -> (&'static str, String) {
    match part {
        Part::Payload => ("payloads", "1".to_owned()),
        Part::Event => ("events", format!("n = {n}")),
        Part::Snapshot => ("snapshots", "1".to_owned()),
    }
}

fn redis_key(conn: &mut redis::Connection, run: &RunId, part: Part) -> String {
    let kind = match part {
        Part::Payload => "p",
        Part::Event => "j",
        Part::Snapshot => "z",
    };
    let keys: Vec<String> =
        redis::cmd("KEYS").arg(format!("hp:test:*:{kind}:{run}")).query(conn).unwrap();
    keys.into_iter().next().unwrap()
}

/// The events that a claim reads: those behind the snapshot, if there is one.
async fn read_events(bench: &Bench, run: &RunId) -> std::ops::Range<u64> {
    let head = bench.store.head(run).await.unwrap().unwrap();
    head.snapshot_seq..head.seq
}

/// A random number below `below`, of a seed that is printed on failure.
struct Dice(u64);

impl Dice {
    fn below(&mut self, below: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from((self.0 >> 33) % below as u64).unwrap()
    }
}

async fn flip_bits(bench: &Bench, part: Part) {
    let seed = u64::try_from(SystemClock.wall_us()).unwrap();
    let mut dice = Dice(seed);
    for number in 0..RUNS {
        let run = bench.parked(number).await;
        let events = read_events(bench, &run).await;
        let n =
            events.start + dice.below(usize::try_from(events.end - events.start).unwrap()) as u64;
        let mut bytes = bench.stored(&run, part, n);
        let bit = dice.below(bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        bench.overwrite(&run, part, n, &bytes);
        let what = format!("seed {seed}: {part:?} {n} of run {number}, bit {bit}");
        bench.is_refused(&run, &what).await;
        assert_eq!(bench.stored(&run, part, n), bytes, "{what} is kept");
    }
}

/// 200 random bits of each kind: each is noticed, and none is executed.
async fn flip_all(bench: Bench) {
    for part in [Part::Payload, Part::Event, Part::Snapshot] {
        flip_bits(&bench, part).await;
    }
    let findings = bench.store.check().await.unwrap();
    assert!(findings.iter().all(|found| found.level != Level::Bad), "{findings:?}");
}

#[tokio::test]
async fn flipped_bits_are_noticed_on_redis() {
    flip_all(Bench::redis().await).await;
}

#[tokio::test]
async fn flipped_bits_are_noticed_on_sqlite() {
    flip_all(Bench::sqlite().await).await;
}

/// C46: a part that is cut, empty, another run's, or an older one of its own.
async fn replace_all(bench: Bench) {
    let other = bench.parked(1_000).await;
    for part in [Part::Payload, Part::Event, Part::Snapshot] {
        for (number, way) in ["cut", "empty", "another's", "older"].into_iter().enumerate() {
            let run = bench.parked(number).await;
            let n = read_events(&bench, &run).await.end - 1;
            let good = bench.stored(&run, part, n);
            let bad = match way {
                "cut" => good[..good.len() - 1].to_vec(),
                "empty" => Vec::new(),
                "another's" => bench.stored(&other, part, n),
                // What was there before: of a journal its first event, and of a snapshot or a
                // payload, which have no earlier form here, that of a version that never was.
                _ if part == Part::Event => bench.stored(&run, part, 0),
                _ => [&[9], &good[1..]].concat(),
            };
            assert_ne!(bad, good);
            bench.overwrite(&run, part, n, &bad);
            bench.is_refused(&run, &format!("{part:?} {way}")).await;
        }
    }
}

#[tokio::test]
async fn replaced_parts_are_noticed_on_redis() {
    replace_all(Bench::redis().await).await;
}

#[tokio::test]
async fn replaced_parts_are_noticed_on_sqlite() {
    replace_all(Bench::sqlite().await).await;
}

/// A run that would start from a damaged one of its session ends as one that cannot be read, and
/// its worker is not taken for lost.
#[tokio::test]
async fn damaged_session_fails_its_next_run() {
    for bench in [Bench::redis().await, Bench::sqlite().await] {
        let first = bench.enqueue(1, Some("s1")).await;
        assert_eq!(bench.work().await, Some(Outcome::Parked));
        bench.answer(&first).await;
        assert_eq!(bench.work().await, Some(Outcome::Completed));
        let n = read_events(&bench, &first).await.end - 1;
        let mut bytes = bench.stored(&first, Part::Event, n);
        bytes[40] ^= 1;
        bench.overwrite(&first, Part::Event, n, &bytes);
        let second = bench.enqueue(2, Some("s1")).await;
        assert_eq!(bench.work().await, Some(Outcome::Failed(ReasonCode::Undecodable)));
        let head = bench.store.head(&second).await.unwrap().unwrap();
        assert_eq!((head.claims, head.reason()), (1, Some(ReasonCode::Undecodable)));
    }
}

/// The bench can fail: what is not damaged goes through the gate.
#[tokio::test]
async fn sound_runs_go_on() {
    for bench in [Bench::redis().await, Bench::sqlite().await] {
        let run = bench.parked(1).await;
        let head = bench.store.head(&run).await.unwrap().unwrap();
        assert!(head.snapshot_seq > 0, "there is a snapshot to damage");
        assert!(head.snapshot_seq < head.seq, "and events behind it");
        bench.answer(&run).await;
        assert_eq!(bench.work().await, Some(Outcome::Completed));
        assert_eq!(bench.behind.load(Ordering::SeqCst), 1);
    }
}
