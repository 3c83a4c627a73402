//! A key of the wrong type, for every call of the store and every key that it touches: the call
//! fails before its first write, or does its work as if the key were not needed; never by halves.
#![expect(clippy::unwrap_used, reason = "a failed call fails the test")]

mod world;

use std::{collections::BTreeMap, time::Duration};

use holdpoint_graph::{Code, End, ReasonCode};
use holdpoint_storage::{
    Address, AppendKind, AppendRequest, ChainHash, Claim as _, ClaimedRun, Commit as _,
    CommitRequest, Disposition, Enqueue as _, GraphRecord, IfBusy, Inspect as _, Maintain as _,
    NewRun, OpenedInterrupt, QuestionFilter, Retention, RunFilter, SignalRequest, StoreError,
    StoreResult, TickRequest, When,
};
use holdpoint_storage_redis::{RedisConfig, RedisStore};
use world::{HOUR_MS, World, claim, commit, config, new_run};

/// All calls of the store, by the scripts behind them.
const CALLS: [&str; 29] = [
    "enqueue",
    "claim",
    "renew",
    "commit",
    "proceed",
    "finish",
    "park",
    "reschedule",
    "end",
    "release",
    "signal",
    "keep",
    "cancel",
    "hush",
    "edit",
    "questions",
    "redrive",
    "start_now",
    "lost",
    "tick",
    "prune",
    "partial",
    "beat",
    "publish",
    "pause",
    "delete_session",
    "head",
    "runs",
    "stats",
];

/// A world in which every call has something to do.
struct Busy {
    world: World,
    running: ClaimedRun,
    in_session: ClaimedRun,
    dump: BTreeMap<String, Vec<u8>>,
}

impl Busy {
    async fn new() -> Self {
        let world = World::sound().await;
        let failed = world.started_in("other", "broken").await;
        world.end(&failed, End::Failed(ReasonCode::NodeError)).await;
        let ended = world.started_in("other", "ended").await;
        world.end(&ended, End::Completed).await;
        let running = world.started_in("other", "mine").await;
        let session = Some("s2".parse().unwrap());
        world.created(&NewRun { session: session.clone(), ..in_lane("other", "head") }).await;
        world.created(&NewRun { session, ..in_lane("other", "next") }).await;
        let in_session = world.claim_in("other", "head").await;
        let session = Some("s3".parse().unwrap());
        world.created(&NewRun { session, ..in_lane("other", "over") }).await;
        let over = world.claim_in("other", "over").await;
        world.end(&over, End::Completed).await;
        world.created(&NewRun { start: When::In(1), ..in_lane("late", "due") }).await;
        world.created(&NewRun { expires: Some(When::In(1)), ..in_lane("late", "expired") }).await;
        let dump = world.dump();
        Self { world, running, in_session, dump }
    }

    /// The world as it was, but for one key.
    fn reset(&self, key: &str) {
        let now = self.world.dump();
        for name in now.keys().filter(|name| !self.dump.contains_key(*name)) {
            self.world.run(&["DEL", name]);
        }
        for (name, value) in &self.dump {
            if now.get(name) != Some(value) {
                let mut restore = redis::cmd("RESTORE");
                restore.arg(self.world.key(name)).arg(0).arg(value).arg("REPLACE");
                self.world.ask::<redis::Value>(&restore);
            }
        }
        let is_string = self.kind(key) == "string";
        self.world.run(&["DEL", key]);
        let wrong: &[&str] = if is_string { &["LPUSH", key, "x"] } else { &["SET", key, "x"] };
        self.world.run(wrong);
    }

    fn kind(&self, key: &str) -> &'static str {
        match self.dump.get(key).and_then(|value| value.first()) {
            // The first byte of a serialised value tells strings from the rest.
            Some(0) => "string",
            Some(_) => "other",
            None => "none",
        }
    }

    async fn call(&self, store: &RedisStore, name: &str) -> StoreResult<()> {
        let (running, session) = (&self.running, &self.in_session);
        match name {
            "enqueue" => {
                let new = NewRun {
                    session: Some("s2".parse().unwrap()),
                    tags: vec!["a".to_owned()],
                    key: Some("k1".parse().unwrap()),
                    expires: Some(When::In(HOUR_MS)),
                    if_busy: IfBusy::Interrupt,
                    ..in_lane("other", "brand-new")
                };
                store.enqueue(&[new, new_run("plain")], false).await.map(drop)
            }
            "claim" => store.claim(&claim("fresh")).await.map(drop),
            "renew" => store.renew(std::slice::from_ref(&running.lease), HOUR_MS).await.map(drop),
            "proceed" => store.commit(&commit(running, Disposition::Continue)).await.map(drop),
            "finish" => store.commit(&finish(running)).await.map(drop),
            "end" => store.commit(&finish(session)).await.map(drop),
            "commit" => {
                let snapshot = Some(b"snapshot".to_vec());
                let go_on = commit(running, Disposition::Continue);
                store.commit(&CommitRequest { snapshot, ..go_on }).await.map(drop)
            }
            "park" => store.commit(&park(session)).await.map(drop),
            "reschedule" => {
                let until_ms = session.head.created_at_ms + HOUR_MS;
                let later = Disposition::Reschedule { until_ms };
                store.commit(&commit(session, later)).await.map(drop)
            }
            "release" => store.release(&session.lease).await.map(drop),
            "signal" => store.signal(&answer(Address::Only, "parked")).await.map(drop),
            "keep" => store.signal(&answer(Address::Gate("g".to_owned()), "mine")).await.map(drop),
            "edit" => {
                let kind = AppendKind::Edit { shown: vec![later()] };
                store.append(&append(store, "parked").await?, &kind).await.map(drop)
            }
            "questions" => store.questions(&QuestionFilter::default(), None, 50).await.map(drop),
            "hush" | "cancel" => {
                let run = if name == "hush" { "asked" } else { "first" };
                let kind = AppendKind::Cancel { rollback: false };
                store.append(&append(store, run).await?, &kind).await.map(drop)
            }
            "redrive" => {
                store.append(&append(store, "broken").await?, &AppendKind::Redrive).await.map(drop)
            }
            "start_now" => store.start_now(&"scheduled".parse().unwrap()).await.map(drop),
            "lost" => store.lost(&"w1".parse().unwrap(), "gone", &[0]).await.map(drop),
            "tick" => store.tick(&tick()).await.map(drop),
            "prune" => {
                let at_once = Retention { done_ms: 0, failed_ms: 0, key_ms: 0 };
                store.prune(at_once, 100).await.map(drop)
            }
            "partial" => store.partial(&running.head.run, 0, b"1".to_vec()).await,
            "beat" => store.beat(&world::worker()).await,
            "publish" => store.publish(&graph()).await,
            "pause" => store.pause(&"default".parse().unwrap(), true).await,
            "delete_session" => store.delete_session(&"s3".parse().unwrap()).await.map(drop),
            "head" => store.head(&running.head.run).await.map(drop),
            "runs" => store.runs(&RunFilter::default(), None, 50).await.map(drop),
            "stats" => store.stats().await.map(drop),
            other => panic!("there is no call {other}"),
        }
    }
}

fn in_lane(queue: &str, name: &str) -> NewRun {
    NewRun { queue: queue.parse().unwrap(), ..new_run(name) }
}

fn finish(run: &ClaimedRun) -> CommitRequest {
    commit(run, Disposition::Finish { end: End::Completed })
}

fn later() -> OpenedInterrupt {
    OpenedInterrupt {
        votes: Vec::new(),
        interrupt: "q2".parse().unwrap(),
        gate: Some("g".to_owned()),
        args_hash: "args".to_owned(),
        deadline_ms: None,
        assignees: Vec::new(),
        groups: vec!["law".to_owned()],
        body: b"{}".to_vec(),
    }
}

fn park(run: &ClaimedRun) -> CommitRequest {
    let until = Some(run.head.created_at_ms + HOUR_MS);
    let park = commit(run, Disposition::Park { wake_at_ms: until });
    CommitRequest { opened: vec![later()], ..park }
}

fn answer(address: Address, run: &str) -> SignalRequest {
    SignalRequest {
        ballot: None,
        run: run.parse().unwrap(),
        request: "answer-1".parse().unwrap(),
        address,
        args_hash: None,
        record: b"yes".to_vec(),
    }
}

async fn append(store: &RedisStore, run: &str) -> StoreResult<AppendRequest> {
    let head = store.head(&run.parse().unwrap()).await?.unwrap();
    Ok(AppendRequest {
        run: head.run,
        request: "append-1".parse().unwrap(),
        from: head.seq,
        previous: head.hash,
        record: b"record".to_vec(),
        hash: ChainHash("00000000000000000000000000000002".to_owned()),
    })
}

fn tick() -> TickRequest {
    TickRequest {
        worker: "w1".parse().unwrap(),
        nonce: "tick".to_owned(),
        lease_ms: HOUR_MS,
        grace_ms: 0,
        loss_delays_ms: vec![0],
        hold_after_ms: HOUR_MS,
        doubt: false,
        max: 100,
    }
}

fn graph() -> GraphRecord {
    GraphRecord {
        graph: "flow".parse().unwrap(),
        fingerprint: holdpoint_graph::Fingerprint::from_text("f".repeat(26).as_str()),
        drawing: "{}".to_owned(),
        published_at_ms: 0,
    }
}

/// What makes a call that fails fail by halves.
async fn check(keys: impl Fn(&Busy) -> Vec<String>) {
    let busy = Busy::new().await;
    let config = RedisConfig { check_every: Duration::ZERO, ..config(&busy.world.server) };
    let store = RedisStore::connect(config).await.unwrap();
    let (mut refused, mut halves) = (0, Vec::new());
    for key in keys(&busy) {
        for call in CALLS {
            busy.reset(&key);
            let before = busy.world.dump();
            match busy.call(&store, call).await {
                Ok(()) => {}
                Err(error @ (StoreError::Corrupt { .. } | StoreError::Refused(_))) => {
                    assert_eq!(error.code(), Code::StateCorrupt, "{call} with {key}: {error}");
                    let after = busy.world.dump();
                    let differ = |name: &&String| before.get(*name) != after.get(*name);
                    let changed: Vec<_> = after.keys().filter(differ).collect();
                    if !changed.is_empty() {
                        halves.push(format!("{call} with {key}: {changed:?}"));
                    }
                    refused += 1;
                }
                Err(error) => panic!("{call} with {key}: {error}"),
            }
        }
    }
    assert!(halves.is_empty(), "calls that stopped half way:\n{}", halves.join("\n"));
    assert!(refused > 0, "no call was refused");
}

/// Keys that all runs share.
#[tokio::test]
async fn shared_keys_stop_calls_before_they_write() {
    check(|_| {
        let names = [
            "ix",
            "sx",
            "due",
            "wak",
            "lse",
            "prk",
            "ou:all",
            "oo:some",
            "od:some",
            "exp",
            "fin",
            "fin.l",
            "can",
            "can.l",
            "dead",
            "dead.l",
            "bad",
            "n",
            "c",
            "l",
            "m",
            "paused",
            "workers",
            "wk",
            "graphs",
            "q:default|flow|",
            "w:default|flow|",
            "q:other|flow|",
            "w:other|flow|",
        ];
        names.map(str::to_owned).to_vec()
    })
    .await;
}

/// Keys of one run, one session, one worker, one tag: all that there are, and those that a call
/// would make.
#[tokio::test]
async fn keys_of_one_thing_stop_calls_before_they_write() {
    check(|busy| {
        let is_own = |key: &&String| {
            key.split_once(':').is_some_and(|(kind, _)| !["q", "w"].contains(&kind))
        };
        let mut keys: Vec<String> = busy.dump.keys().filter(is_own).cloned().collect();
        for made in [
            "z:mine",
            "y:mine",
            "i:mine",
            "i:parked",
            "o:head",
            "i:head",
            "ou:m:law",
            "od:g:flow",
            "k:k1",
        ] {
            keys.push(made.to_owned());
        }
        keys
    })
    .await;
}
