//! What only a Redis can do to the store: settings that lose data, scripts and keys that vanish,
//! restarts, lost replies, keys of the wrong type.
#![expect(clippy::unwrap_used, reason = "a failed call fails the test")]

use std::time::Duration;

use holdpoint_graph::{Code, GraphId, Namespace, QueueId, RequestId, RunId, RunStatus, WorkerId};
use holdpoint_storage::{
    ChainHash, Claim as _, ClaimRequest, Commit as _, CommitReply, CommitRequest, Disposition,
    Durability, Enqueue as _, Enqueued, IfBusy, Inspect as _, Lane, Level, Maintain as _, NewRun,
    StoreError, TickRequest, When,
};
use holdpoint_storage_redis::{RedisConfig, RedisStore};
use holdpoint_testkit::{Appendfsync, RedisServer, until_async};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

const PATIENCE: Duration = Duration::from_secs(20);

fn config(server: &RedisServer) -> RedisConfig {
    RedisConfig::new(server.url(), Namespace::new("shop").unwrap())
}

async fn store(server: &RedisServer) -> RedisStore {
    RedisStore::connect(config(server)).await.unwrap()
}

fn new_run(name: &str) -> NewRun {
    NewRun {
        run: RunId::new(name).unwrap(),
        request: RequestId::new(format!("ask-{name}")).unwrap(),
        graph: GraphId::new("flow").unwrap(),
        fingerprint: None,
        queue: QueueId::new("default").unwrap(),
        session: None,
        if_busy: IfBusy::Enqueue,
        payload: b"payload".to_vec(),
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

fn claim(nonce: &str) -> ClaimRequest {
    let lane = Lane {
        queue: QueueId::new("default").unwrap(),
        graph: GraphId::new("flow").unwrap(),
        fingerprint: None,
    };
    ClaimRequest {
        worker: WorkerId::new("w1").unwrap(),
        nonce: nonce.to_owned(),
        lanes: vec![lane],
        max: 10,
        lease_ms: 60_000,
        oldest_first: false,
        bytes_max: 1_000_000,
    }
}

fn commit(run: &holdpoint_storage::ClaimedRun) -> CommitRequest {
    CommitRequest {
        lease: run.lease.clone(),
        request: RequestId::new("commit-1").unwrap(),
        from: 0,
        previous: ChainHash::default(),
        records: vec![b"record".to_vec()],
        hash: ChainHash("00000000000000000000000000000001".to_owned()),
        snapshot: None,
        consumed: Vec::new(),
        opened: Vec::new(),
        closed: Vec::new(),
        is_progress: true,
        pin: None,
        lease_ms: 60_000,
        disposition: Disposition::Continue,
    }
}

/// The key of a run's part, as the server has it.
fn key(server: &RedisServer, name: &str) -> String {
    server.cli(&["--scan", "--pattern", &format!("hp:shop:*:{name}")])
}

async fn check_refused(line: &str, setting: &str) {
    let server = RedisServer::config().line(line).start();
    let error = RedisStore::connect(config(&server)).await.unwrap_err();
    assert_eq!(error.code(), Code::StoreUnsafe, "{line}: {error}");
    assert!(error.to_string().contains(setting), "{error} names {setting}");
    assert!(error.to_string().contains("CONFIG SET"), "{error} says what to do");
    let accepted = RedisConfig { accept_data_loss: true, ..config(&server) };
    let store = RedisStore::connect(accepted).await.unwrap();
    let findings = store.check().await.unwrap();
    assert!(findings.iter().any(|f| f.level == Level::Bad && f.text.contains(setting)));
}

#[tokio::test]
async fn settings_that_lose_data_are_refused() {
    check_refused("maxmemory-policy allkeys-lru", "maxmemory-policy").await;
    check_refused("maxmemory-policy volatile-ttl", "maxmemory-policy").await;
    check_refused("appendonly no", "appendonly").await;
    check_refused("appendfsync no", "appendfsync").await;
    check_refused("no-appendfsync-on-rewrite yes", "no-appendfsync-on-rewrite").await;
}

#[tokio::test]
async fn a_replica_is_refused() {
    let server = RedisServer::config().line("replicaof 127.0.0.1 1").start();
    let error = RedisStore::connect(config(&server)).await.unwrap_err();
    assert_eq!(error.code(), Code::StoreUnsafe);
    assert!(error.to_string().contains("primary"), "{error}");
}

#[tokio::test]
async fn acknowledgements_name_their_level() {
    for (sync, level) in
        [(Appendfsync::Everysec, Durability::Buffered), (Appendfsync::Always, Durability::Fsynced)]
    {
        let server = RedisServer::config().appendfsync(sync).start();
        let reply = store(&server).await.enqueue(&[new_run("r1")], false).await.unwrap();
        assert_eq!(reply.durability, level);
    }
}

#[tokio::test]
async fn no_server_is_unavailable() {
    let server = RedisServer::start();
    let store = store(&server).await;
    server.kill_9();
    let error = until_async("the connection to notice", PATIENCE, async || {
        match store.enqueue(&[new_run("r1")], false).await {
            Err(error @ StoreError::Unavailable { .. }) => Some(error),
            Ok(_) | Err(_) => None,
        }
    })
    .await;
    assert!(error.is_retryable());
    let error = RedisStore::connect(config(&server)).await.unwrap_err();
    assert_eq!(error.code(), Code::StoreUnavailable);
}

#[tokio::test]
async fn scripts_come_back_after_a_flush() {
    let server = RedisServer::start();
    let store = store(&server).await;
    server.cli(&["SCRIPT", "FLUSH"]);
    store.enqueue(&[new_run("r1")], false).await.unwrap();
    server.cli(&["SCRIPT", "FLUSH"]);
    assert_eq!(store.claim(&claim("n1")).await.unwrap().runs.len(), 1);
}

#[tokio::test]
async fn flushed_store_says_so_once_and_serves_again() {
    let server = RedisServer::start();
    let store = store(&server).await;
    store.enqueue(&[new_run("r1")], false).await.unwrap();
    let run = store.claim(&claim("n1")).await.unwrap().runs.remove(0);
    server.cli(&["FLUSHALL"]);
    let error = store.commit(&commit(&run)).await.unwrap_err();
    assert_eq!(error.code(), Code::StoreReset);
    assert!(matches!(store.commit(&commit(&run)).await, Err(StoreError::Corrupt { .. })));
    let reply = store.enqueue(&[new_run("r1")], false).await.unwrap();
    assert!(matches!(reply.items[..], [Enqueued::Created { .. }]));
    assert_eq!(store.commit(&commit(&run)).await.unwrap(), CommitReply::Fenced);
}

#[tokio::test]
async fn restarted_store_keeps_what_it_acknowledged() {
    let server = RedisServer::start();
    let store = store(&server).await;
    store.enqueue(&[new_run("r1")], false).await.unwrap();
    let run = store.claim(&claim("n1")).await.unwrap().runs.remove(0);
    server.kill_9();
    server.restart();
    assert!(matches!(store.commit(&commit(&run)).await.unwrap(), CommitReply::Done { .. }));
    let head = store.head(&run.head.run).await.unwrap().unwrap();
    assert_eq!((head.status(), head.seq), (RunStatus::Running, 1));
}

/// Passes bytes to a server, and loses the first answer after it was told to: the connection ends
/// when the server has done what it was asked.
async fn lossy_line(
    server: &RedisServer,
) -> (String, std::sync::Arc<std::sync::atomic::AtomicBool>, tempfile::TempDir) {
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let path = folder.path().join("line.sock");
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    let loses = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let (flag, socket) = (std::sync::Arc::clone(&loses), server.socket());
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            let server = tokio::net::UnixStream::connect(&socket).await.unwrap();
            let flag = std::sync::Arc::clone(&flag);
            tokio::spawn(async move { pass(client, server, &flag).await });
        }
    });
    (format!("redis+unix://{}", path.display()), loses, folder)
}

async fn pass(
    mut client: tokio::net::UnixStream,
    mut server: tokio::net::UnixStream,
    loses: &std::sync::atomic::AtomicBool,
) {
    let (mut asked, mut answered) = ([0; 4096], [0; 4096]);
    loop {
        tokio::select! {
            Ok(count @ 1..) = client.read(&mut asked) => {
                server.write_all(&asked[..count]).await.unwrap();
            }
            Ok(count @ 1..) = server.read(&mut answered) => {
                if loses.swap(false, std::sync::atomic::Ordering::SeqCst) {
                    return;
                }
                client.write_all(&answered[..count]).await.unwrap();
            }
            else => return,
        }
    }
}

/// The repeat of a call whose answer was lost is the same request.
#[tokio::test]
async fn lost_replies_are_asked_for_again() {
    let server = RedisServer::start();
    let (url, loses, _folder) = lossy_line(&server).await;
    let check_every = Duration::from_secs(3_600);
    let config = RedisConfig { connections: 1, url, check_every, ..config(&server) };
    let store = RedisStore::connect(config).await.unwrap();
    let lose = || loses.store(true, std::sync::atomic::Ordering::SeqCst);
    lose();
    let reply = store.enqueue(&[new_run("r1")], false).await.unwrap();
    assert!(matches!(reply.items[..], [Enqueued::Repeated { .. }]), "{reply:?}");
    lose();
    let run = store.claim(&claim("n1")).await.unwrap().runs.remove(0);
    assert_eq!(run.head.claims, 1, "claimed once");
    lose();
    assert!(matches!(store.commit(&commit(&run)).await.unwrap(), CommitReply::Done { .. }));
    let head = store.head(&run.head.run).await.unwrap().unwrap();
    assert_eq!(head.seq, 1, "written once");
}

#[tokio::test]
async fn silent_server_gives_an_unknown_outcome() {
    let server = RedisServer::start();
    let response_timeout = Duration::from_millis(500);
    let patience = Duration::from_millis(50);
    let config = RedisConfig { response_timeout, patience, ..config(&server) };
    let store = RedisStore::connect(config).await.unwrap();
    server.pause();
    let error = store.enqueue(&[new_run("r1")], false).await.unwrap_err();
    let StoreError::UnknownOutcome { request, .. } = &error else { panic!("{error}") };
    assert_eq!(*request, new_run("r1").request);
    server.resume();
    let reply = store.enqueue(&[new_run("r1")], false).await.unwrap();
    assert_eq!(reply.items.len(), 1);
    assert!(!reply.items[0].is_refused(), "the same request has one effect");
}

#[tokio::test]
async fn full_store_takes_no_new_run_and_lets_work_end() {
    let server = RedisServer::start();
    let store = store(&server).await;
    store.enqueue(&[new_run("r1")], false).await.unwrap();
    let run = store.claim(&claim("n1")).await.unwrap().runs.remove(0);
    server.cli(&["CONFIG", "SET", "maxmemory", "1mb"]);
    let error = store.enqueue(&[new_run("r2")], false).await.unwrap_err();
    assert_eq!(error.code(), Code::StoreFull);
    assert!(matches!(store.commit(&commit(&run)).await.unwrap(), CommitReply::Done { .. }));
    let leases = [run.lease.clone()];
    store.renew(&leases, 60_000).await.unwrap();
    assert!(store.release(&run.lease).await.unwrap());
}

#[tokio::test]
async fn key_of_the_wrong_type_is_corrupt_and_harms_no_other() {
    let server = RedisServer::start();
    let store = store(&server).await;
    store.enqueue(&[new_run("r1"), new_run("r2")], false).await.unwrap();
    let head = key(&server, "r:r1");
    server.cli(&["SET", &head, "rubbish"]);
    let error = store.head(&RunId::new("r1").unwrap()).await.unwrap_err();
    assert_eq!(error.code(), Code::StateCorrupt);
    let runs = store.claim(&claim("n1")).await.unwrap().runs;
    assert_eq!(runs.len(), 1, "the other is claimed");
    assert_eq!(runs[0].head.run.as_str(), "r2");
    let findings = store.check().await.unwrap();
    assert!(
        findings.iter().any(|f| f.level == Level::Warn && f.text.contains("r1")),
        "{findings:?}"
    );
}

/// An epoch that is no number below 2^53 never comes back smaller.
#[tokio::test]
async fn damaged_epoch_is_corrupt_before_any_write() {
    let server = RedisServer::start();
    let store = store(&server).await;
    store.enqueue(&[new_run("r1")], false).await.unwrap();
    let run = store.claim(&claim("n1")).await.unwrap().runs.remove(0);
    let head = key(&server, "r:r1");
    let dump = |server: &RedisServer| server.cli(&["HGETALL", &head]);
    for epoch in ["abc", "1e3", "9007199254740993", "9223372036854775807", ""] {
        server.cli(&["HSET", &head, "e", epoch]);
        let before = dump(&server);
        let error = store.commit(&commit(&run)).await.unwrap_err();
        assert_eq!(error.code(), Code::StateCorrupt, "{epoch}: {error}");
        let error = store.release(&run.lease).await.unwrap_err();
        assert_eq!(error.code(), Code::StateCorrupt, "{epoch}: {error}");
        assert_eq!(dump(&server), before);
    }
}

#[tokio::test]
async fn newer_layout_is_refused() {
    let server = RedisServer::start();
    drop(store(&server).await);
    let meta = key(&server, "meta");
    server.cli(&["SET", &meta, "2 instance"]);
    let error = RedisStore::connect(config(&server)).await.unwrap_err();
    assert_eq!(error.code(), Code::SchemaNewer);
}

#[tokio::test]
async fn namespaces_share_no_key() {
    let server = RedisServer::start();
    let one = store(&server).await;
    let other = Namespace::new("other").unwrap();
    let other = RedisConfig::new(server.url(), other);
    let other = RedisStore::connect(other).await.unwrap();
    one.enqueue(&[new_run("r1")], false).await.unwrap();
    assert!(other.head(&RunId::new("r1").unwrap()).await.unwrap().is_none());
    assert!(other.claim(&claim("n1")).await.unwrap().runs.is_empty());
}

#[tokio::test]
async fn other_server_process_holds_the_reaper() {
    let server = RedisServer::start();
    let store = store(&server).await;
    store.enqueue(&[new_run("r1")], false).await.unwrap();
    store.claim(&claim("n1")).await.unwrap();
    let request = TickRequest {
        worker: WorkerId::new("w2").unwrap(),
        nonce: "tick".to_owned(),
        lease_ms: 60_000,
        grace_ms: 0,
        loss_delays_ms: vec![0],
        hold_after_ms: 3_600_000,
        doubt: false,
        max: 100,
    };
    assert_eq!(store.tick(&request).await.unwrap().held_until_ms, None);
    server.kill_9();
    server.restart();
    let ticked = store.tick(&request).await.unwrap();
    assert!(ticked.held_until_ms.is_some_and(|until| until > ticked.now_ms), "{ticked:?}");
}

#[tokio::test]
async fn changes_of_a_run_are_told() {
    let server = RedisServer::start();
    let store = store(&server).await;
    store.enqueue(&[new_run("r1")], false).await.unwrap();
    let run = RunId::new("r1").unwrap();
    store.changed(&run, PATIENCE).await;
    let (waiter, id) = (store.clone(), run.clone());
    let waiting = tokio::spawn(async move { waiter.changed(&id, PATIENCE * 3).await });
    store.claim(&claim("n1")).await.unwrap();
    tokio::time::timeout(PATIENCE, waiting).await.expect("it is told").unwrap();
}

#[tokio::test]
async fn sound_store_has_no_bad_finding() {
    let server = RedisServer::start();
    let store = store(&server).await;
    store.enqueue(&[new_run("r1"), new_run("r2")], false).await.unwrap();
    store.claim(&ClaimRequest { max: 1, ..claim("n1") }).await.unwrap();
    let findings = store.check().await.unwrap();
    assert!(findings.iter().all(|finding| finding.level != Level::Bad), "{findings:?}");
    server.cli(&["DEL", &key(&server, "lse")]);
    let findings = store.check().await.unwrap();
    assert!(
        findings.iter().any(|f| f.check == "missing" && f.text.contains("lse")),
        "{findings:?}"
    );
}
