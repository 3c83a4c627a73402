//! The conformance suite on SQLite, each property with a file of its own.
#![expect(clippy::unwrap_used, reason = "a failed call fails the test")]

use std::sync::Arc;

use async_trait::async_trait;
use holdpoint_graph::{Namespace, RunId};
use holdpoint_storage::{
    Store,
    conformance::{Bench, Part},
};
use holdpoint_storage_sqlite::{Location, SqliteConfig, SqliteStore};
use rusqlite::{Connection, params};

struct SqliteBench(tempfile::TempDir);

impl SqliteBench {
    fn start() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn raw(&self) -> Connection {
        let conn = Connection::open(self.0.path().join("store.db")).unwrap();
        conn.busy_timeout(std::time::Duration::from_secs(5)).unwrap();
        conn
    }
}

#[async_trait]
impl Bench for SqliteBench {
    async fn fresh(&self, namespace: &Namespace) -> Arc<dyn Store> {
        let file = Location::File(self.0.path().join("store.db"));
        let config = SqliteConfig::new(file, namespace.clone());
        Arc::new(SqliteStore::open(config).await.unwrap())
    }

    async fn stored(&self, namespace: &Namespace, run: &RunId, part: Part) -> Vec<u8> {
        let (table, number) = place(part);
        let sql = format!("SELECT body FROM {table} WHERE run = {KEY} AND {number}");
        let params = [namespace.as_str(), run.as_str()];
        self.raw().query_row(&sql, params, |row| row.get(0)).unwrap()
    }

    async fn overwrite(
        &self,
        namespace: &Namespace,
        run: &RunId,
        part: Part,
        bytes: Option<&[u8]>,
    ) {
        let (table, number) = place(part);
        let (ns, run, conn) = (namespace.as_str(), run.as_str(), self.raw());
        let changed = match bytes {
            None => conn.execute(
                &format!("DELETE FROM {table} WHERE run = {KEY} AND {number}"),
                params![ns, run],
            ),
            // What was taken away before comes back.
            Some(bytes) if part == Part::Payload => conn.execute(
                &format!("INSERT OR REPLACE INTO payloads (run, body) VALUES ({KEY}, ?3)"),
                params![ns, run, bytes],
            ),
            Some(bytes) => conn.execute(
                &format!("UPDATE {table} SET body = ?3 WHERE run = {KEY} AND {number}"),
                params![ns, run, bytes],
            ),
        };
        assert_eq!(changed.unwrap(), 1);
    }

    fn head_breaks(&self) -> &'static [&'static str] {
        &["losses = 'rubbish'", "cancel = 'maybe'", "seq = -1", "tags = '['"]
    }

    fn forgets_the_session(&self, _way: &str) -> bool {
        false
    }

    async fn break_head(&self, namespace: &Namespace, run: &RunId, way: &str) {
        let sql = format!("UPDATE runs SET {way} WHERE key = {KEY}");
        let changed = self.raw().execute(&sql, params![namespace.as_str(), run.as_str()]);
        assert_eq!(changed.unwrap(), 1);
    }
}

/// The key of a run by namespace and id.
const KEY: &str = "(SELECT key FROM runs JOIN namespaces USING (ns) WHERE name = ?1 AND id = ?2)";

fn place(part: Part) -> (&'static str, String) {
    match part {
        Part::Payload => ("payloads", "1".to_owned()),
        Part::Event(n) => ("events", format!("n = {n}")),
        Part::Snapshot => ("snapshots", "1".to_owned()),
    }
}

holdpoint_storage::conformance_tests!(SqliteBench::start());
