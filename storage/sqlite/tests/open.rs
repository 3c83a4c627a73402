//! Opening a file: each way in which it is refused, with its code.
#![expect(clippy::unwrap_used, reason = "a failed call fails the test")]

use std::{path::Path, time::Duration};

use holdpoint_graph::{Code, Namespace};
use holdpoint_storage::{Enqueue, Inspect, Level, Maintain, Store, StoreError};
use holdpoint_storage_sqlite::{Location, SqliteConfig, SqliteStore, Synchronous};
use rusqlite::Connection;

fn config(file: &Path) -> SqliteConfig {
    SqliteConfig::new(Location::File(file.to_owned()), Namespace::new("test").unwrap())
}

async fn refused(config: SqliteConfig, code: Code) -> String {
    let error = SqliteStore::open(config).await.unwrap_err();
    assert_eq!(error.code(), code, "{error}");
    assert!(!error.is_retryable());
    error.to_string()
}

#[tokio::test]
async fn a_missing_folder_is_not_created() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("no/such/store.db");
    let text = refused(config(&file), Code::SqliteDir).await;
    assert!(text.contains("no/such/store.db"), "{text}");
    assert!(!folder.path().join("no").exists());
}

#[tokio::test]
async fn a_missing_file_is_created_only_when_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let closed = SqliteConfig { create_if_missing: false, ..config(&file) };
    refused(closed.clone(), Code::SqliteDir).await;
    assert!(!file.exists(), "no empty database is left");
    SqliteStore::open(config(&file)).await.unwrap();
    SqliteStore::open(closed).await.unwrap();
}

#[tokio::test]
async fn a_file_that_is_no_database_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let text = "this is no database, and long enough to have a whole header ".repeat(40);
    std::fs::write(&file, &text).unwrap();
    refused(config(&file), Code::SqliteNotDb).await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), text);
    refused(config(folder.path()), Code::SqliteNotDb).await;
}

#[tokio::test]
async fn a_database_of_another_program_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let conn = Connection::open(&file).unwrap();
    conn.execute_batch("CREATE TABLE theirs (x); PRAGMA application_id = 7;").unwrap();
    let text = refused(config(&file), Code::SqliteNotDb).await;
    assert!(text.contains("another program"), "{text}");
    let mode: String = conn.query_row("PRAGMA journal_mode", [], |row| row.get(0)).unwrap();
    assert_eq!(mode, "delete", "not even its journal was changed");
}

#[tokio::test]
async fn a_newer_schema_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    drop(SqliteStore::open(config(&file)).await.unwrap());
    let conn = Connection::open(&file).unwrap();
    conn.pragma_update(None, "user_version", 99).unwrap();
    let text = refused(config(&file), Code::SchemaNewer).await;
    assert!(text.contains("schema 99"), "{text}");
}

/// SQLite opens a file whose header asks for a newer writer, but only for reading. This shows
/// the same as a file without permission, and it does so for root, too.
#[tokio::test]
async fn a_file_that_cannot_be_written_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let conn = Connection::open(&file).unwrap();
    conn.execute_batch("CREATE TABLE t (x); DROP TABLE t;").unwrap();
    drop(conn);
    let mut bytes = std::fs::read(&file).unwrap();
    bytes[18] = 9;
    std::fs::write(&file, bytes).unwrap();
    refused(config(&file), Code::SqliteReadonly).await;
}

/// C57: what a newer SQLite wrote is told as such, and not touched.
#[tokio::test]
async fn a_newer_format_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let conn = Connection::open(&file).unwrap();
    conn.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE t (x);").unwrap();
    conn.close().unwrap();
    let good = std::fs::read(&file).unwrap();
    let mut newer = good.clone();
    newer[19] = 3;
    std::fs::write(&file, &newer).unwrap();
    let text = refused(config(&file), Code::SqliteWalNewer).await;
    assert!(text.contains("format 3"), "{text}");
    assert_eq!(std::fs::read(&file).unwrap(), newer);
    std::fs::write(&file, &good).unwrap();
    let log = folder.path().join("store.db-wal");
    let header = [0x377f_0682_u32, 3_008_000, 4_096, 0, 0, 0, 0, 0];
    let header: Vec<u8> = header.iter().flat_map(|word| word.to_be_bytes()).collect();
    std::fs::write(&log, &header).unwrap();
    let text = refused(config(&file), Code::SqliteWalNewer).await;
    assert!(text.contains("3008000"), "{text}");
    assert_eq!(std::fs::read(&log).unwrap(), header);
}

#[tokio::test]
async fn a_locked_file_is_refused_after_the_timeout() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let conn = Connection::open(&file).unwrap();
    conn.execute_batch("PRAGMA locking_mode = EXCLUSIVE; BEGIN EXCLUSIVE;").unwrap();
    let config = SqliteConfig { busy_timeout: Duration::from_millis(20), ..config(&file) };
    refused(config, Code::SqliteLocked).await;
}

#[tokio::test]
async fn a_writer_that_holds_the_lock_makes_calls_retryable() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let config = SqliteConfig { busy_timeout: Duration::from_millis(20), ..config(&file) };
    let store = SqliteStore::open(config).await.unwrap();
    let conn = Connection::open(&file).unwrap();
    conn.execute_batch("BEGIN IMMEDIATE").unwrap();
    let queue = "queue".parse().unwrap();
    let pause = || store.pause(&queue, true);
    let error = pause().await.unwrap_err();
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error}");
    assert!(error.is_retryable());
    assert!(store.stats().await.unwrap().paused.is_empty(), "readers are not hindered");
    conn.execute_batch("ROLLBACK").unwrap();
    pause().await.unwrap();
    assert_eq!(store.stats().await.unwrap().paused.len(), 1);
}

#[tokio::test]
async fn many_processes_may_open_a_new_file_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let opens: Vec<_> = (0..8).map(|_| tokio::spawn(SqliteStore::open(config(&file)))).collect();
    for open in opens {
        open.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn the_level_is_the_settings() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("store.db");
    let normal = SqliteConfig { synchronous: Synchronous::Normal, ..config(&file) };
    let namespace = Namespace::new("test").unwrap();
    let check = async |config: SqliteConfig, expect: &str, warns: usize| {
        let store = SqliteStore::open(config).await.unwrap();
        let reply = store.enqueue(&[], false).await.unwrap();
        assert_eq!(reply.durability.as_str(), expect, "{}", store.describe());
        let findings = store.check().await.unwrap();
        let found = findings.iter().filter(|finding| finding.level == Level::Warn).count();
        assert_eq!(found, warns, "{findings:?}");
    };
    check(config(&file), "fsynced", 0).await;
    check(normal, "buffered", 1).await;
    check(SqliteConfig::new(Location::Memory, namespace), "buffered", 2).await;
}

/// Older libraries can damage a file in WAL mode that has several connections.
#[test]
fn the_library_is_new_enough() {
    assert!(rusqlite::version_number() >= 3_051_003, "{}", rusqlite::version());
}
