//! The conformance suite on SQLite, each property with a file of its own.
#![expect(clippy::unwrap_used, reason = "a failed call fails the test")]

use std::sync::Arc;

use async_trait::async_trait;
use holdpoint_graph::Namespace;
use holdpoint_storage::{Store, conformance::Bench};
use holdpoint_storage_sqlite::{Location, SqliteConfig, SqliteStore};

struct SqliteBench(tempfile::TempDir);

impl SqliteBench {
    fn start() -> Self {
        Self(tempfile::tempdir().unwrap())
    }
}

#[async_trait]
impl Bench for SqliteBench {
    async fn fresh(&self, namespace: &Namespace) -> Arc<dyn Store> {
        let file = Location::File(self.0.path().join("store.db"));
        let config = SqliteConfig::new(file, namespace.clone());
        Arc::new(SqliteStore::open(config).await.unwrap())
    }
}

holdpoint_storage::conformance_tests!(SqliteBench::start());
