//! A namespace with a run of every kind on a server of its own, and ways behind the store's back.
#![expect(dead_code, reason = "each test file uses its own part")]

use std::{cell::RefCell, collections::BTreeMap};

use holdpoint_graph::{End, Namespace, ReasonCode, RunId};
use holdpoint_storage::{
    ChainHash, Claim as _, ClaimRequest, ClaimedRun, Commit as _, CommitReply, CommitRequest,
    Disposition, Enqueue as _, Enqueued, IfBusy, Lane, Maintain as _, NewRun, OpenedInterrupt,
    When, WorkerRecord,
};
use holdpoint_storage_redis::{RedisConfig, RedisStore};
use holdpoint_testkit::{Appendfsync, RedisServer};

/// An hour in ms: longer than any test.
pub(crate) const HOUR_MS: i64 = 3_600_000;

/// A store and its server.
pub(crate) struct World {
    pub(crate) store: RedisStore,
    pub(crate) server: RedisServer,
    prefix: String,
    raw: RefCell<redis::Connection>,
}

/// The configuration of these tests for a server.
pub(crate) fn config(server: &RedisServer) -> RedisConfig {
    RedisConfig::new(server.url(), Namespace::new("shop").unwrap())
}

pub(crate) fn new_run(name: &str) -> NewRun {
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

/// A claim of one run from the lane of [`new_run`].
pub(crate) fn claim(nonce: &str) -> ClaimRequest {
    let new = new_run("any");
    ClaimRequest {
        worker: "w1".parse().unwrap(),
        nonce: nonce.to_owned(),
        lanes: vec![Lane { queue: new.queue, graph: new.graph, fingerprint: None }],
        max: 1,
        lease_ms: HOUR_MS,
        oldest_first: false,
        bytes_max: 1_000_000,
    }
}

/// A commit of one record behind the head that was claimed.
pub(crate) fn commit(run: &ClaimedRun, disposition: Disposition) -> CommitRequest {
    CommitRequest {
        lease: run.lease.clone(),
        request: format!("commit-{}-{}", run.head.run, run.head.seq).parse().unwrap(),
        from: run.head.seq,
        previous: run.head.hash.clone(),
        records: vec![b"record".to_vec()],
        hash: ChainHash("00000000000000000000000000000001".to_owned()),
        snapshot: None,
        consumed: Vec::new(),
        opened: Vec::new(),
        closed: Vec::new(),
        is_progress: true,
        pin: None,
        lease_ms: HOUR_MS,
        disposition,
    }
}

impl World {
    /// An empty namespace.
    pub(crate) async fn empty() -> Self {
        let server = RedisServer::config().appendfsync(Appendfsync::Everysec).start();
        let store = RedisStore::connect(config(&server)).await.unwrap();
        Self::of(server, store)
    }

    pub(crate) fn of(server: RedisServer, store: RedisStore) -> Self {
        let meta = server.cli(&["--scan", "--pattern", "hp:shop:*:meta"]);
        let prefix = meta.strip_suffix("meta").unwrap().to_owned();
        let client = redis::Client::open(format!("unix://{}", server.socket().display())).unwrap();
        let raw = RefCell::new(client.get_connection().unwrap());
        Self { store, server, prefix, raw }
    }

    /// A run in each state, a session with two runs, tags, questions, timers, limits.
    pub(crate) async fn sound() -> Self {
        let world = Self::empty().await;
        for name in ["parked", "asked", "done", "failed", "running"] {
            let claimed = world.started(name).await;
            match name {
                "asked" => {
                    let park = commit(&claimed, Disposition::Park { wake_at_ms: None });
                    let opened = vec![asked()];
                    world.done(&CommitRequest { opened, ..park }).await;
                }
                "parked" => {
                    let until = Some(claimed.head.created_at_ms + HOUR_MS);
                    let park = commit(&claimed, Disposition::Park { wake_at_ms: until });
                    let question = OpenedInterrupt {
                        votes: Vec::new(),
                        deadline_ms: None,
                        assignees: Vec::new(),
                        groups: Vec::new(),
                        interrupt: "q1".parse().unwrap(),
                        gate: None,
                        args_hash: "args".to_owned(),
                        body: b"{}".to_vec(),
                    };
                    world.done(&CommitRequest { opened: vec![question], ..park }).await;
                }
                "done" => world.end(&claimed, End::Completed).await,
                "failed" => world.end(&claimed, End::Failed(ReasonCode::NodeError)).await,
                _ => {}
            }
        }
        let later = When::In(HOUR_MS);
        let in_session =
            |name: &str| NewRun { session: Some("s1".parse().unwrap()), ..new_run(name) };
        world.created(&NewRun { start: later, expires: Some(later), ..new_run("scheduled") }).await;
        world.created(&NewRun { tags: vec!["a".to_owned()], ..new_run("queued") }).await;
        world.created(&in_session("first")).await;
        world.created(&in_session("second")).await;
        world.store.beat(&worker()).await.unwrap();
        world
    }

    pub(crate) async fn created(&self, new: &NewRun) -> RunId {
        let reply = self.store.enqueue(std::slice::from_ref(new), false).await.unwrap();
        assert!(matches!(reply.items[..], [Enqueued::Created { .. }]), "{reply:?}");
        new.run.clone()
    }

    /// A run that was enqueued and claimed.
    pub(crate) async fn started(&self, name: &str) -> ClaimedRun {
        let tags = if name == "asked" { vec!["b".to_owned()] } else { Vec::new() };
        self.created(&NewRun { tags, ..new_run(name) }).await;
        let claimed = self.store.claim(&claim(&format!("nonce-{name}"))).await.unwrap().runs;
        claimed.into_iter().next().unwrap()
    }

    /// The same in another queue.
    pub(crate) async fn started_in(&self, queue: &str, name: &str) -> ClaimedRun {
        self.created(&NewRun { queue: queue.parse().unwrap(), ..new_run(name) }).await;
        self.claim_in(queue, name).await
    }

    pub(crate) async fn claim_in(&self, queue: &str, name: &str) -> ClaimedRun {
        let mut request = claim(&format!("nonce-{name}"));
        request.lanes[0].queue = queue.parse().unwrap();
        let claimed = self.store.claim(&request).await.unwrap().runs.remove(0);
        assert_eq!(claimed.head.run.as_str(), name);
        claimed
    }

    pub(crate) async fn done(&self, request: &CommitRequest) {
        let reply = self.store.commit(request).await.unwrap();
        assert!(matches!(reply, CommitReply::Done { .. }), "{reply:?}");
    }

    pub(crate) async fn end(&self, claimed: &ClaimedRun, end: End) {
        self.done(&commit(claimed, Disposition::Finish { end })).await;
    }

    pub(crate) fn key(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Asks the server itself.
    pub(crate) fn ask<T: redis::FromRedisValue>(&self, command: &redis::Cmd) -> T {
        command.query(&mut *self.raw.borrow_mut()).unwrap()
    }

    /// Runs commands, the second word of each being a key without the prefix; `;` stands between.
    pub(crate) fn run(&self, words: &[&str]) {
        for words in words.split(|word| *word == ";") {
            let mut command = redis::cmd(words[0]);
            if words[0] == "SET" {
                self.ask::<redis::Value>(redis::cmd("DEL").arg(self.key(words[1])));
            }
            command.arg(self.key(words[1])).arg(&words[2..]);
            self.ask::<redis::Value>(&command);
        }
    }

    /// All keys without the prefix, with their serialised values.
    pub(crate) fn dump(&self) -> BTreeMap<String, Vec<u8>> {
        let keys: Vec<String> = self.ask(redis::cmd("KEYS").arg(format!("{}*", self.prefix)));
        let value = |key: &String| self.ask::<Vec<u8>>(redis::cmd("DUMP").arg(key));
        let name = |key: &String| key.strip_prefix(&self.prefix).unwrap().to_owned();
        keys.iter().map(|key| (name(key), value(key))).collect()
    }

    /// What is stored of a run itself.
    pub(crate) fn parts_of(&self, run: &str) -> Vec<(String, Vec<u8>)> {
        let is_part = |key: &str| key.split_once(':').is_some_and(|(_, of)| of == run);
        let parts = self.dump().into_iter();
        parts.filter(|(key, _)| is_part(key) && !key.starts_with("w:")).collect()
    }
}

/// A question that stands in lists of every kind.
fn asked() -> OpenedInterrupt {
    OpenedInterrupt {
        votes: Vec::new(),
        interrupt: "q1".parse().unwrap(),
        gate: None,
        args_hash: "args".to_owned(),
        deadline_ms: Some(HOUR_MS),
        assignees: vec!["ann lee".to_owned()],
        groups: vec!["ops".to_owned()],
        body: b"{}".to_vec(),
    }
}

pub(crate) fn worker() -> WorkerRecord {
    WorkerRecord {
        trouble: None,
        worker: "w1".parse().unwrap(),
        host: "host".to_owned(),
        pid: 1,
        since_ms: 0,
        beat_at_ms: 0,
        is_draining: false,
        graphs: Vec::new(),
        queues: Vec::new(),
        concurrency: 1,
        lost_after_ms: HOUR_MS,
        runs: Vec::new(),
    }
}
