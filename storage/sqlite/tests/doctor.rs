//! The doctor: each kind of damage is made by hand, found, kept in the backup, and mended; what is
//! sound stays as it is to the byte.
#![expect(clippy::unwrap_used, reason = "a failed call fails the test")]

use std::collections::BTreeMap;

use holdpoint_graph::{End, ReasonCode};
use holdpoint_storage::{
    ChainHash, Claim as _, ClaimRequest, ClaimedRun, Commit as _, CommitReply, CommitRequest,
    Damage, Disposition, Enqueue as _, Enqueued, Finding, IfBusy, Inspect as _, Lane, Level,
    Maintain as _, NewRun, OpenedInterrupt, When,
};
use holdpoint_storage_sqlite::{Location, SqliteConfig, SqliteStore};
use rusqlite::{Connection, types::Value};

const HOUR_MS: i64 = 3_600_000;

/// All rows of all tables.
type Dump = BTreeMap<String, Vec<Vec<Value>>>;

struct World {
    store: SqliteStore,
    conn: Connection,
    _folder: tempfile::TempDir,
}

fn new_run(name: &str) -> NewRun {
    NewRun {
        run: name.parse().unwrap(),
        request: format!("ask-{name}").parse().unwrap(),
        graph: "flow".parse().unwrap(),
        fingerprint: None,
        queue: "default".parse().unwrap(),
        session: None,
        if_busy: IfBusy::Enqueue,
        payload: format!("payload of {name}").into_bytes(),
        payload_hash: "00000000000000000000000000".to_owned(),
        priority: 4,
        start: When::In(0),
        expires: None,
        deadline: None,
        key: None,
        tags: Vec::new(),
        queue_depth_max: 1_000,
    }
}

impl World {
    /// A run in each state, and a session with two runs.
    async fn sound() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("store.db");
        let config = SqliteConfig::new(Location::File(file.clone()), "shop".parse().unwrap());
        let store = SqliteStore::open(config).await.unwrap();
        let conn = Connection::open(&file).unwrap();
        conn.execute_batch("PRAGMA ignore_check_constraints = ON").unwrap();
        let world = Self { store, conn, _folder: folder };
        for name in ["parked", "done", "failed", "running"] {
            world.created(&new_run(name)).await;
            let claimed = world.claim(name).await;
            let until = Some(claimed.head.created_at_ms + HOUR_MS);
            match name {
                "parked" => world.commit(&claimed, Disposition::Park { wake_at_ms: until }).await,
                "done" => world.end(&claimed, End::Completed).await,
                "failed" => world.end(&claimed, End::Failed(ReasonCode::NodeError)).await,
                _ => {}
            }
        }
        let later = When::In(HOUR_MS);
        world.created(&NewRun { start: later, expires: Some(later), ..new_run("scheduled") }).await;
        world.created(&new_run("queued")).await;
        for name in ["first", "second"] {
            let session = Some("s1".parse().unwrap());
            world.created(&NewRun { session, ..new_run(name) }).await;
        }
        world
    }

    async fn created(&self, new: &NewRun) {
        let reply = self.store.enqueue(std::slice::from_ref(new), false).await.unwrap();
        assert!(matches!(reply.items[..], [Enqueued::Created { .. }]), "{reply:?}");
    }

    async fn claim(&self, nonce: &str) -> ClaimedRun {
        let new = new_run("any");
        let request = ClaimRequest {
            worker: "w1".parse().unwrap(),
            nonce: nonce.to_owned(),
            lanes: vec![Lane { queue: new.queue, graph: new.graph, fingerprint: None }],
            max: 1,
            lease_ms: HOUR_MS,
            oldest_first: false,
            bytes_max: 1_000_000,
        };
        self.store.claim(&request).await.unwrap().runs.remove(0)
    }

    async fn end(&self, run: &ClaimedRun, end: End) {
        self.commit(run, Disposition::Finish { end }).await;
    }

    async fn commit(&self, run: &ClaimedRun, disposition: Disposition) {
        let opened = match disposition {
            Disposition::Park { .. } => vec![OpenedInterrupt {
                votes: Vec::new(),
                deadline_ms: Some(HOUR_MS),
                assignees: vec!["ann".to_owned()],
                groups: vec!["ops".to_owned()],
                interrupt: "q1".parse().unwrap(),
                gate: None,
                args_hash: "args".to_owned(),
                body: b"{}".to_vec(),
            }],
            _ => Vec::new(),
        };
        let request = CommitRequest {
            lease: run.lease.clone(),
            request: format!("commit-{}", run.head.run).parse().unwrap(),
            from: 0,
            previous: ChainHash::default(),
            records: vec![b"record".to_vec()],
            hash: ChainHash("00000000000000000000000000000001".to_owned()),
            snapshot: None,
            consumed: Vec::new(),
            opened,
            closed: Vec::new(),
            is_progress: true,
            pin: None,
            lease_ms: HOUR_MS,
            disposition,
        };
        let reply = self.store.commit(&request).await.unwrap();
        assert!(matches!(reply, CommitReply::Done { .. }), "{reply:?}");
    }

    fn run(&self, sql: &str) {
        self.conn.execute_batch(sql).unwrap();
    }

    fn dump(&self) -> Dump {
        let names = "SELECT name FROM sqlite_schema WHERE type = 'table'";
        let mut names = self.conn.prepare(names).unwrap();
        let names = names.query_map([], |row| row.get::<_, String>(0)).unwrap();
        names.map(|name| name.unwrap()).map(|name| (name.clone(), self.table(&name))).collect()
    }

    fn table(&self, name: &str) -> Vec<Vec<Value>> {
        let mut rows = self.conn.prepare(&format!("SELECT * FROM {name} ORDER BY 1, 2")).unwrap();
        let columns = rows.column_count();
        let row = |row: &rusqlite::Row<'_>| (0..columns).map(|at| row.get(at)).collect();
        rows.query_map([], row).unwrap().map(|row| row.unwrap()).collect()
    }

    async fn mendable(&self) -> Vec<Damage> {
        let faults = self.store.faults().await.unwrap();
        faults.into_iter().filter(Damage::is_mendable).collect()
    }

    /// Mends until nothing is left that can be mended; all that was found.
    async fn repair(&self) -> Vec<Damage> {
        let mut found = Vec::new();
        for _ in 0..10 {
            let before = self.dump();
            let faults = self.mendable().await;
            assert_eq!(self.dump(), before, "a look writes nothing");
            if faults.is_empty() {
                return found;
            }
            let mended = self.store.repair(&faults).await.unwrap();
            assert!(mended.contains(&true), "{faults:?}");
            found.extend(faults);
        }
        panic!("it does not end: {found:?}");
    }

    async fn bad(&self) -> Vec<Finding> {
        let findings = self.store.check().await.unwrap();
        findings.into_iter().filter(|found| found.level == Level::Bad).collect()
    }
}

/// Does damage to a sound store: it is found by its kind and by what it is about, mended, and
/// everything is as it was.
async fn check(damage: &str, kind: &str, about: &str) {
    let world = World::sound().await;
    let sound = world.dump();
    assert!(world.store.faults().await.unwrap().is_empty());
    world.run(damage);
    let bad = world.bad().await;
    assert!(bad.iter().any(|found| found.text.contains(about)), "{damage}: {bad:?}");
    let found = world.repair().await;
    let is_it = |fault: &Damage| fault.check == kind && fault.text.contains(about);
    assert!(found.iter().any(is_it), "{damage}: {found:?}");
    assert!(world.bad().await.is_empty(), "{damage}");
    let mended = world.dump();
    for (table, rows) in &sound {
        assert_eq!(&mended[table], rows, "{damage}: {table}");
    }
}

/// C51: parts without a run.
#[tokio::test]
async fn parts_without_run_are_removed() {
    for part in [
        "INSERT INTO events (run, n, body) VALUES (99, 0, x'00')",
        "INSERT INTO payloads (run, body) VALUES (99, x'00')",
        "INSERT INTO snapshots (run, body) VALUES (99, x'00')",
        "INSERT INTO partials (run, n, after, body) VALUES (99, 1, 1, x'00')",
        "INSERT INTO inbox (run, key, request, record) VALUES (99, 'gx', 'r', x'00')",
        "INSERT INTO interrupts (ns, run, id, args_hash, opened_ms, votes, lists, body)
         VALUES (1, 99, 'q', '', 1, '', '[\"all\"]', x'00')",
    ] {
        check(part, "orphan", "99").await;
    }
}

/// C51: runs that stand where their state does not belong, or do not stand where it does.
#[tokio::test]
async fn misplaced_runs_are_put_back() {
    for (damage, run) in [
        ("ready = 0", "queued"),
        ("ready = 1", "second"),
        ("turn = NULL", "second"),
        ("close_ms = NULL", "scheduled"),
        ("close_ms = 5", "done"),
        ("close_ms = 5", "running"),
        ("turn = 7, ready = 0", "queued"),
    ] {
        check(&format!("UPDATE runs SET {damage} WHERE id = '{run}'"), "misplaced", run).await;
    }
}

/// Lists of questions hold every question that names them, and no other.
#[tokio::test]
async fn lists_of_questions_are_corrected() {
    for list in ["od:a:ann", "oo:m:ops", "oo:g:flow", "od:some"] {
        check(&format!("DELETE FROM listed WHERE list = '{list}'"), "missing", list).await;
        let later = format!("UPDATE listed SET at_ms = 5 WHERE list = '{list}'");
        check(&later, "orphan", &format!("{list} at 5")).await;
    }
    for (list, id) in [("ou:all", "q1"), ("oo:g:flow", "q9"), ("od:a:bob", "q1")] {
        let key = "(SELECT key FROM runs WHERE id = 'parked')";
        let more = format!("INSERT INTO listed VALUES (1, '{list}', 5, '{id}', {key})");
        check(&more, "orphan", list).await;
    }
    check("INSERT INTO listed VALUES (1, 'ou:all', 5, 'q1', 99)", "orphan", "99").await;
    let other = r#"UPDATE interrupts SET lists = '["a:ann","g:else","m:ops","some"]'"#;
    check(other, "misplaced", "names other lists").await;
}

/// Counts and sessions are corrected.
#[tokio::test]
async fn wrong_counts_are_counted_again() {
    check("UPDATE counts SET n = 99 WHERE status = 'queued'", "count", "default").await;
    check("UPDATE counts SET n = n - 1 WHERE status = 'parked'", "count", "parked").await;
    check("UPDATE runs SET open_count = 3 WHERE id = 'parked'", "count", "parked").await;
    check("UPDATE runs SET inbox_count = 3 WHERE id = 'queued'", "count", "queued").await;
    check("UPDATE sessions SET last = 99", "session", "s1").await;
}

/// A damaged run is set aside with its bytes; the others stay as they are. When its head is whole
/// again it is taken back.
#[tokio::test]
async fn damaged_runs_are_set_aside_and_taken_back() {
    for run in ["scheduled", "queued", "running", "parked", "done", "failed", "first", "second"] {
        let world = World::sound().await;
        let sound = world.dump();
        world.run(&format!("UPDATE runs SET cancel = 'maybe' WHERE id = '{run}'"));
        let found = world.repair().await;
        assert!(found.iter().any(|f| f.check == "unreadable" && f.about == run), "{found:?}");
        let row = found.iter().flat_map(|f| &f.changes).find(|change| change.place == "runs");
        assert!(row.unwrap().before.as_ref().unwrap().contains("\"cancel\":\"maybe\""));
        assert!(world.bad().await.is_empty(), "{run}");
        let kept = world.dump();
        for table in ["events", "payloads", "snapshots", "inbox"] {
            assert_eq!(kept[table], sound[table], "{run}: {table}");
        }
        let key_of = |row: &Vec<Value>| (row[0].clone(), row[2].clone());
        for (row, was) in kept["runs"].iter().zip(&sound["runs"]) {
            assert_eq!(key_of(row), key_of(was));
            let is_next = run == "first" && row[2] == Value::Text("second".to_owned());
            if row[2] != Value::Text(run.to_owned()) && !is_next {
                assert_eq!(row, was, "beside {run}");
            }
        }
        world.run(&format!("UPDATE runs SET cancel = NULL WHERE id = '{run}'"));
        let found = world.repair().await;
        assert!(found.iter().any(|f| f.text.contains("can be read")), "{run}: {found:?}");
        assert!(world.bad().await.is_empty(), "{run}");
        assert_eq!(world.dump()["counts"], sound["counts"], "{run}");
        assert_eq!(world.dump()["interrupts"], sound["interrupts"], "{run}");
        if run != "first" {
            assert_eq!(world.dump()["runs"], sound["runs"], "{run}");
        }
    }
}

/// A run of which a part is missing is set aside; one that a worker has is left to it.
#[tokio::test]
async fn runs_without_their_parts_are_set_aside() {
    for (table, run) in [("payloads", "queued"), ("events", "parked"), ("events", "done")] {
        let world = World::sound().await;
        let key = format!("(SELECT key FROM runs WHERE id = '{run}')");
        world.run(&format!("DELETE FROM {table} WHERE run = {key}"));
        let found = world.repair().await;
        assert!(found.iter().any(|f| f.check == "parts" && f.about == run), "{found:?}");
        assert!(world.bad().await.is_empty(), "{run}");
    }
    let world = World::sound().await;
    world.run("DELETE FROM payloads WHERE run = (SELECT key FROM runs WHERE id = 'running')");
    let found = world.store.faults().await.unwrap();
    assert!(found.iter().any(|f| f.check == "parts" && !f.is_mendable()), "{found:?}");
}

/// A fault that has gone meanwhile is left alone, and so is one whose run has moved on.
#[tokio::test]
async fn a_repair_looks_again() {
    let world = World::sound().await;
    world.run("INSERT INTO payloads (run, body) VALUES (99, x'00')");
    world.run("UPDATE runs SET close_ms = 5 WHERE id = 'queued'");
    world.run("UPDATE runs SET close_ms = 5 WHERE id = 'done'");
    let faults = world.mendable().await;
    assert_eq!(faults.len(), 3, "{faults:?}");
    world.run("DELETE FROM payloads WHERE run = 99");
    assert_eq!(world.claim("n9").await.head.run.as_str(), "queued");
    let mended = world.store.repair(&faults).await.unwrap();
    let of = |about: &str| mended[faults.iter().position(|f| f.about == about).unwrap()];
    assert_eq!((of("99"), of("queued"), of("done")), (false, false, true));
    assert!(world.store.faults().await.unwrap().is_empty());
}
