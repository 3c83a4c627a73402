//! The handle of an open store.

use std::{sync::Arc, time::Duration};

use holdpoint_graph::{RequestId, RunId};
use holdpoint_storage::{Lane, StoreError, StoreResult};
use tokio::{task::spawn_blocking, time::timeout};
use tracing::warn;

use crate::{
    config::{Location, SqliteConfig},
    db::Db,
    fault::Done,
    open,
    reader::{Pool, Readers},
    tx::Tx,
    wake::Wake,
    writer::Writer,
};

/// An open store. Cheap to clone: all clones share one writer and its readers. The file is closed
/// when the last clone is gone.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    config: SqliteConfig,
    writer: Writer,
    readers: Readers,
    wake: Arc<Wake>,
}

impl SqliteStore {
    /// Opens the store, creates or migrates its schema, and enters the namespace.
    ///
    /// Dropping the future leaves at most a file that is empty or has the schema.
    ///
    /// # Errors
    /// `E_SQLITE_VERSION` when the library is too old; `E_SQLITE_DIR` when there is no such folder
    /// (or no file, and none is to be created); `E_SQLITE_READONLY`, `E_SQLITE_NETWORK_FS`,
    /// `E_SQLITE_NOT_DB` and `E_SQLITE_LOCKED` for a file that cannot be used; `E_SCHEMA_NEWER`
    /// when a newer program wrote it; [`StoreError::Unavailable`] for other failures.
    pub async fn open(config: SqliteConfig) -> StoreResult<Self> {
        let opened = spawn_blocking(move || Self::open_now(config)).await;
        opened.map_err(|error| StoreError::Unavailable { cause: error.to_string() })?
    }

    fn open_now(config: SqliteConfig) -> StoreResult<Self> {
        let db = open::writer(&config)?;
        Self::over(db, config)
    }

    /// The store on an open connection.
    fn over(db: Db, config: SqliteConfig) -> StoreResult<Self> {
        let (ns, wake) = (db.ns, Arc::new(Wake::default()));
        let writer = Writer::start(db, Arc::clone(&config.clock), Arc::clone(&wake))
            .map_err(|error| StoreError::Unavailable { cause: error.to_string() })?;
        let readers = match config.location {
            Location::Memory => Readers::Writer(writer.clone()),
            Location::File(_) => Readers::Pool(Arc::new(Pool::new(config.clone(), ns))),
        };
        Ok(Self { shared: Arc::new(Shared { config, writer, readers, wake }) })
    }

    pub(crate) fn config(&self) -> &SqliteConfig {
        &self.shared.config
    }

    /// The time by the store's clock, in ms since 1970.
    pub(crate) fn clock_ms(&self) -> i64 {
        self.shared.config.clock.wall_ms()
    }

    pub(crate) async fn write<R, F>(&self, work: F) -> StoreResult<R>
    where
        F: FnMut(&mut Tx<'_>) -> Done<R> + Send + 'static,
        R: Send + 'static,
    {
        self.shared.writer.call(None, work).await
    }

    /// A write that has a request id, by which an unknown outcome can be cleared up.
    pub(crate) async fn request<R, F>(&self, request: &RequestId, work: F) -> StoreResult<R>
    where
        F: FnMut(&mut Tx<'_>) -> Done<R> + Send + 'static,
        R: Send + 'static,
    {
        self.shared.writer.call(Some(request.clone()), work).await
    }

    pub(crate) async fn read<R, F>(&self, work: F) -> StoreResult<R>
    where
        F: Fn(&Db) -> Done<R> + Send + 'static,
        R: Send + 'static,
    {
        self.shared.readers.read(work).await
    }

    /// Returns when a run may be claimed from one of the lanes, or after `patience`.
    pub(crate) async fn wait_for_lanes(&self, lanes: &[Lane], patience: Duration) {
        let waiting = self.shared.wake.for_lanes(lanes);
        self.shared.writer.look();
        let come = async {
            // Whatever came before the registration is seen here, whatever comes after is told.
            while !self.has_ready(lanes).await {
                if waiting.told().await {
                    return;
                }
            }
        };
        // Patience that ran out is a way to return like any other.
        drop(timeout(patience, come).await);
    }

    async fn has_ready(&self, lanes: &[Lane]) -> bool {
        let lanes = lanes.to_vec();
        self.read(move |db| db.has_ready(&lanes)).await.unwrap_or_else(|error| {
            warn!(%error, "failed to look for claimable runs");
            false
        })
    }

    /// Returns when the run may have changed, or after `patience`.
    pub(crate) async fn wait_for_run(&self, run: &RunId, patience: Duration) {
        let waiting = self.shared.wake.for_run(run);
        self.shared.writer.look();
        drop(timeout(patience, waiting.told()).await);
    }
}

#[cfg(test)]
mod tests {
    use holdpoint_graph::Code;
    use holdpoint_storage::{Enqueue as _, Enqueued, IfBusy, Inspect as _, NewRun, When};

    use super::*;

    fn new_run(number: usize) -> NewRun {
        NewRun {
            run: format!("r{number}").parse().unwrap(),
            request: format!("ask-{number}").parse().unwrap(),
            graph: "flow".parse().unwrap(),
            fingerprint: None,
            queue: "default".parse().unwrap(),
            session: None,
            if_busy: IfBusy::Enqueue,
            payload: vec![b'x'; 20_000],
            payload_hash: String::new(),
            priority: 4,
            start: When::In(0),
            expires: None,
            deadline: None,
            key: None,
            tags: Vec::new(),
            queue_depth_max: 1_000,
        }
    }

    /// C30, C57: a file that can grow no more takes no run, keeps what it acknowledged, and goes
    /// on once there is room. The limit is SQLite's own, so that the error is the real one.
    #[tokio::test]
    async fn a_full_file_refuses_and_keeps() {
        let folder = tempfile::tempdir().unwrap();
        let location = Location::File(folder.path().join("store.db"));
        let config = SqliteConfig::new(location, "test".parse().unwrap());
        let db = open::writer(&config).unwrap();
        db.conn.pragma_update(None, "max_page_count", 100).unwrap();
        let store = SqliteStore::over(db, config.clone()).unwrap();
        let mut stored = 0;
        let error = loop {
            match store.enqueue(&[new_run(stored)], false).await {
                Ok(_) => stored += 1,
                Err(error) => break error,
            }
        };
        assert_eq!(error.code(), Code::StoreFull, "{error}");
        assert!(error.is_retryable() && (5..30).contains(&stored), "{stored}");
        let open = SqliteStore::open(config).await.unwrap();
        for number in 0..stored {
            let payload = open.payload(&new_run(number).run).await.unwrap();
            assert_eq!(payload, Some(new_run(number).payload));
        }
        assert!(open.head(&new_run(stored).run).await.unwrap().is_none(), "nothing of it is kept");
        let findings = open.check().await.unwrap();
        assert!(findings.iter().all(|f| f.level == holdpoint_storage::Level::Ok), "{findings:?}");
        let reply = open.enqueue(&[new_run(stored)], false).await.unwrap();
        assert!(matches!(reply.items[..], [Enqueued::Created { .. }]), "{reply:?}");
    }
}
