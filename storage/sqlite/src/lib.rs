//! Holdpoint's embedded store: one SQLite file, which several processes of a host may share.
//!
//! Each process has one thread that writes, and gathers the calls of all tasks into groups that
//! share a sync of the disk; readers have connections of their own and wait for nobody. All
//! rules of a run's life are `holdpoint_graph::Life`'s; this crate only stores what they decide.
//!
//! ```
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use holdpoint_graph::Namespace;
//! use holdpoint_storage::Inspect;
//! use holdpoint_storage_sqlite::{Location, SqliteConfig, SqliteStore};
//!
//! let config = SqliteConfig::new(Location::Memory, Namespace::new("example")?);
//! let store = SqliteStore::open(config).await?;
//! assert_eq!(store.stats().await?.open_questions, 0);
//! # Ok(())
//! # }
//! # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
//! ```

mod aside;
mod config;
mod db;
mod digests;
mod faces;
mod fault;
mod network;
mod open;
mod ops;
mod place;
mod questions;
mod read;
mod reader;
mod row;
mod schema;
mod store;
mod tx;
mod wake;
mod writer;

pub use config::{Location, SqliteConfig, Synchronous};
pub use store::SqliteStore;
