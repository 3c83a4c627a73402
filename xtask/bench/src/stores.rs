//! The stores that are measured, each fresh: a server of its own, or a file of its own.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use holdpoint_graph::Namespace;
use holdpoint_storage::Store;
use holdpoint_storage_redis::{RedisConfig, RedisStore};
use holdpoint_storage_sqlite::{Location, SqliteConfig, SqliteStore};
use holdpoint_testkit::{Appendfsync, RedisServer, Scratch};
use holdpoint_worker::StoreFactory;

/// A kind of store, with its durability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreKind {
    /// SQLite, each commit on the disk.
    SqliteFull,
    /// Redis, its log on the disk every second.
    RedisEverysec,
    /// Redis, its log on the disk before each reply.
    RedisAlways,
}

impl StoreKind {
    pub(crate) const ALL: [Self; 3] = [Self::SqliteFull, Self::RedisEverysec, Self::RedisAlways];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::SqliteFull => "sqlite-full",
            Self::RedisEverysec => "redis-everysec",
            Self::RedisAlways => "redis-always",
        }
    }
}

/// A fresh store and what keeps it alive.
pub(crate) struct Fresh {
    pub(crate) store: Arc<dyn Store>,
    /// Opens a second handle, as a worker's upkeep does.
    pub(crate) second: StoreFactory,
    pub(crate) server_pid: Option<u32>,
    /// Where the store is, for another process.
    pub(crate) url: String,
    server: Option<RedisServer>,
    scratch: Scratch,
}

impl Fresh {
    /// The bytes that the store takes: memory of a server, or of its files on the disk.
    pub(crate) fn bytes(&self) -> Result<u64> {
        if let Some(server) = &self.server {
            let info = server.cli(&["INFO", "memory"]);
            let used = info.lines().find_map(|line| line.trim().strip_prefix("used_memory:"));
            return Ok(used.context("a server tells its memory")?.parse()?);
        }
        let mut bytes = 0;
        for file in std::fs::read_dir(self.scratch.path())? {
            bytes += file?.metadata()?.len();
        }
        Ok(bytes)
    }
}

/// Starts a fresh store; on Redis with so many connections for commands, 0 for the default.
pub(crate) async fn fresh(kind: StoreKind, connections: usize) -> Result<Fresh> {
    let namespace = Namespace::new("bench")?;
    let scratch = Scratch::new();
    let fsync = match kind {
        StoreKind::SqliteFull => {
            let location = Location::File(scratch.file("w.db"));
            let store = SqliteStore::open(SqliteConfig::new(location, namespace)).await?;
            let store: Arc<dyn Store> = Arc::new(store);
            let again = Arc::clone(&store);
            let second: StoreFactory = Arc::new(move || {
                let again = Arc::clone(&again);
                Box::pin(async move { Ok(again) })
            });
            let url = format!("sqlite:{}", scratch.file("w.db").display());
            let (server_pid, server) = (None, None);
            return Ok(Fresh { store, second, server_pid, url, server, scratch });
        }
        StoreKind::RedisEverysec => Appendfsync::Everysec,
        StoreKind::RedisAlways => Appendfsync::Always,
    };
    // A rewrite of the log in mid-measurement would take a core from producer and worker.
    let server = RedisServer::config().appendfsync(fsync).tcp();
    let server = server.line("auto-aof-rewrite-percentage 0").start();
    let mut config = RedisConfig::new(server.url(), namespace);
    config.connections = connections;
    let store: Arc<dyn Store> = Arc::new(RedisStore::connect(config.clone()).await?);
    let second: StoreFactory = Arc::new(move || {
        let config = config.clone();
        Box::pin(async move {
            let store: Arc<dyn Store> = Arc::new(RedisStore::connect(config).await?);
            Ok(store)
        })
    });
    let (server_pid, url) = (Some(server.pid()), server.url());
    Ok(Fresh { store, second, server_pid, url, server: Some(server), scratch })
}
