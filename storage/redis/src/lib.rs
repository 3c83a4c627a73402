//! Holdpoint's Redis store: each call of a [`Store`] trait is one Lua script, so it is atomic, and
//! each is known by a request id or a natural key, so it may be repeated.
//!
//! Nothing here decides anything about runs: the scripts make the moves that callers ask for.
//! `keys.rs` lists all keys, `scripts/` has the transitions, `conn.rs` drives the server.

mod batch;
mod call;
mod checks;
mod codec;
mod config;
mod conn;
mod error;
mod follow;
mod guard;
mod keys;
mod ops;
mod script;
mod socket;
mod wake;

use holdpoint_graph::Namespace;
use holdpoint_storage::{Store, StoreError};

pub use config::RedisConfig;

use crate::{batch::Batches, conn::RedisConn, follow::Follow, wake::Wake};

/// A namespace in a Redis server, 7.0 or newer. Cheap to clone; clones share the connections.
#[derive(Debug, Clone)]
pub struct RedisStore {
    conn: RedisConn,
    batches: Batches,
    wake: Wake,
    follow: Follow,
}

impl RedisStore {
    /// Connects to the server, checks that it keeps what it acknowledges, and makes the namespace
    /// when it is new.
    ///
    /// # Errors
    /// [`StoreError::Unavailable`] when nothing answers; [`StoreError::Refused`] when the server
    /// is too old (`E_STORE_UNSUPPORTED`), may lose what it acknowledged (`E_STORE_UNSAFE`, unless
    /// the configuration accepts that), or has a layout of another version.
    pub async fn connect(config: RedisConfig) -> Result<Self, StoreError> {
        let conn = RedisConn::connect(config).await?;
        let batches = Batches::new(conn.clone());
        let wake = Wake::new(conn.clone());
        let follow = Follow::new(conn.clone());
        Ok(Self { conn, batches, wake, follow })
    }
}

impl Store for RedisStore {
    fn describe(&self) -> String {
        let config = self.conn.config();
        format!("redis {} namespace {}", config.place(), config.namespace)
    }

    fn namespace(&self) -> &Namespace {
        &self.conn.config().namespace
    }
}
