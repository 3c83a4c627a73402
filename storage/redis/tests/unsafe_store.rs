//! Servers that must not hold runs: at the start, and when they become such while in use.
#![expect(clippy::unwrap_used, reason = "a failed call fails the test")]

mod world;

use std::time::Duration;

use holdpoint_graph::Code;
use holdpoint_storage::{Claim as _, Enqueue as _, Inspect as _, Level, StoreError};
use holdpoint_storage_redis::{RedisConfig, RedisStore};
use holdpoint_testkit::{RedisServer, until_async};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use world::{World, claim, commit, config, new_run};

const PATIENCE: Duration = Duration::from_secs(20);

async fn refused(config: RedisConfig, code: Code, named: &str) {
    let error = RedisStore::connect(config).await.unwrap_err();
    assert_eq!(error.code(), code, "{named}: {error}");
    assert_eq!(error.code().exit_status(), 6);
    assert!(error.to_string().contains(named), "{error} names {named}");
}

/// I21: settings that lose what was acknowledged are refused, each by its name.
#[tokio::test]
async fn bad_settings_are_refused_at_the_start() {
    for line in [
        "maxmemory-policy allkeys-lru",
        "maxmemory-policy allkeys-lfu",
        "maxmemory-policy allkeys-random",
        "maxmemory-policy volatile-lru",
        "maxmemory-policy volatile-ttl",
        "appendonly no",
        "appendfsync no",
        "no-appendfsync-on-rewrite yes",
    ] {
        let server = RedisServer::config().line(line).start();
        let setting = line.split(' ').next().unwrap();
        refused(config(&server), Code::StoreUnsafe, setting).await;
    }
    let server = RedisServer::config().line("replicaof 127.0.0.1 1").start();
    refused(config(&server), Code::StoreUnsafe, "primary").await;
}

/// I21, C54, C56: namespaces that are not ours are refused.
#[tokio::test]
async fn other_namespaces_are_refused_at_the_start() {
    let world = World::empty().await;
    let instance = Some("another".to_owned());
    let other = RedisConfig { instance, ..config(&world.server) };
    refused(other.clone(), Code::StoreUnsafe, "--join").await;
    RedisStore::connect(RedisConfig { join: true, ..other }).await.unwrap();
    let findings = world.store.check().await.unwrap();
    let shown = findings.iter().find(|finding| finding.check == "instance").unwrap();
    let own = shown.text.rsplit(' ').next().unwrap().to_owned();
    let own = RedisConfig { instance: Some(own), ..config(&world.server) };
    RedisStore::connect(own).await.unwrap();
    world.run(&["SET", "meta", "2 newer"]);
    refused(config(&world.server), Code::SchemaNewer, "layout 2").await;
    world.run(&["SET", "meta", "rubbish"]);
    let error = RedisStore::connect(config(&world.server)).await.unwrap_err();
    assert_eq!(error.code(), Code::StateCorrupt, "{error}");
}

/// I21, C52: a sentinel that is gone while there are runs means that keys were deleted.
#[tokio::test]
async fn lost_sentinel_is_refused_while_there_are_runs() {
    let world = World::empty().await;
    world.created(&new_run("r1")).await;
    world.run(&["DEL", "meta"]);
    refused(config(&world.server), Code::StoreUnsafe, "sentinel").await;
    let joined = RedisConfig { join: true, ..config(&world.server) };
    let store = RedisStore::connect(joined).await.unwrap();
    assert_eq!(store.claim(&claim("n1")).await.unwrap().runs.len(), 1);
    RedisStore::connect(config(&world.server)).await.unwrap();
}

/// Answers INFO as a server of another version or kind would.
async fn impostor(info: &'static str) -> (RedisConfig, tempfile::TempDir) {
    let folder = tempfile::tempdir_in("/tmp").unwrap();
    let path = folder.path().join("impostor.sock");
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut asked = [0; 4096];
                while let Ok(count @ 1..) = client.read(&mut asked).await {
                    let text = String::from_utf8_lossy(&asked[..count]).to_uppercase();
                    let commands = text.matches("\r\n$").count().max(1);
                    let reply = if text.contains("INFO\r\n") && !text.contains("SETINFO") {
                        format!("${}\r\n{info}\r\n", info.len())
                    } else if text.contains("CONFIG") {
                        "*0\r\n".to_owned()
                    } else {
                        "+OK\r\n".repeat(commands.min(text.matches('*').count().max(1)))
                    };
                    if client.write_all(reply.as_bytes()).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    let url = format!("redis+unix://{}", path.display());
    (RedisConfig::new(url, "shop".parse().unwrap()), folder)
}

/// C55: servers without script flags are refused by their version.
#[tokio::test]
async fn old_servers_are_refused() {
    for info in ["redis_version:5.0.14\r\nrole:master", "redis_version:6.2.7\r\nrole:master"] {
        let (config, _folder) = impostor(info).await;
        refused(config, Code::StoreUnsupported, "7.0").await;
    }
    let (config, _folder) = impostor("nothing:1").await;
    refused(config, Code::StoreUnsupported, "7.0").await;
}

/// I21: a server that becomes unsafe is noticed at the next check. Claims and enqueues stop, work
/// that is under way goes on, and when it is safe again all goes on.
#[tokio::test]
async fn bad_settings_are_noticed_while_running() {
    for (setting, bad, good) in [
        ("maxmemory-policy", "allkeys-lru", "noeviction"),
        ("maxmemory-policy", "volatile-ttl", "noeviction"),
        ("appendonly", "no", "yes"),
        ("appendfsync", "no", "always"),
        ("no-appendfsync-on-rewrite", "yes", "no"),
    ] {
        noticed(&["CONFIG", "SET", setting, bad], &["CONFIG", "SET", setting, good], setting).await;
    }
}

/// Makes a server unsafe and safe again.
async fn noticed(bad: &[&str], good: &[&str], named: &str) {
    let server = RedisServer::start();
    let check_every = Duration::from_millis(20);
    let config = RedisConfig { check_every, ..config(&server) };
    let store = RedisStore::connect(config).await.unwrap();
    let world = World::of(server, store);
    let running = world.started("r1").await;
    world.server.cli(bad);
    let error = until_async("the change to be noticed", PATIENCE, async || {
        world.store.claim(&claim("n1")).await.err()
    })
    .await;
    assert_eq!(error.code(), Code::StoreUnsafe, "{error}");
    assert!(error.to_string().contains(named), "{error}");
    let error = world.store.enqueue(&[new_run("r3")], false).await.unwrap_err();
    assert_eq!(error.code(), Code::StoreUnsafe, "{error}");
    world.done(&commit(&running, holdpoint_storage::Disposition::Continue)).await;
    world.server.cli(good);
    until_async("the server to be taken again", PATIENCE, async || {
        world.store.claim(&claim("n2")).await.ok()
    })
    .await;
    world.created(&new_run("r3")).await;
    assert_eq!(world.store.claim(&claim("n3")).await.unwrap().runs.len(), 1);
}

/// I21: a primary that becomes a replica is noticed, and so is its return.
#[tokio::test]
async fn lost_role_is_noticed_while_running() {
    let server = RedisServer::start();
    let check_every = Duration::from_millis(20);
    let store = RedisStore::connect(RedisConfig { check_every, ..config(&server) }).await.unwrap();
    let world = World::of(server, store);
    world.server.cli(&["REPLICAOF", "127.0.0.1", "1"]);
    let error = until_async("the change to be noticed", PATIENCE, async || {
        match world.store.claim(&claim("n1")).await {
            Err(error @ (StoreError::Refused(_) | StoreError::Unavailable { .. })) => Some(error),
            Ok(_) | Err(_) => None,
        }
    })
    .await;
    assert_eq!(error.code().exit_status(), 6, "{error}");
    world.server.cli(&["REPLICAOF", "NO", "ONE"]);
    until_async("the server to be taken again", PATIENCE, async || {
        world.store.claim(&claim("n2")).await.ok()
    })
    .await;
    world.created(&new_run("r1")).await;
    assert_eq!(world.store.claim(&claim("n3")).await.unwrap().runs.len(), 1);
}

/// What is no danger is told by the doctor and not refused.
#[tokio::test]
async fn doubtful_settings_are_told() {
    let server = RedisServer::config().line("appendfsync everysec").start();
    let store = RedisStore::connect(config(&server)).await.unwrap();
    let findings = store.check().await.unwrap();
    for text in ["everysec", "maxmemory is not set"] {
        let is_told =
            |f: &holdpoint_storage::Finding| f.level == Level::Warn && f.text.contains(text);
        assert!(findings.iter().any(is_told), "{text}: {findings:?}");
    }
}
