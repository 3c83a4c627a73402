//! Connections for reading: they see what is committed, and hinder nobody.

use std::sync::{Arc, Mutex, PoisonError};

use holdpoint_storage::{StoreError, StoreResult};
use tokio::sync::Semaphore;

use crate::{
    config::SqliteConfig,
    db::Db,
    fault::{Done, Fault},
    open,
    writer::Writer,
};

/// Readers at once: enough that a slow one (a check of a large file) does not stop the others.
const READERS_MAX: usize = 4;

/// The readers of a file, or for a store in memory its only connection.
#[derive(Debug, Clone)]
pub(crate) enum Readers {
    /// A few connections of their own.
    Pool(Arc<Pool>),
    /// The writer's.
    Writer(Writer),
}

/// Connections that nobody uses at the moment.
#[derive(Debug)]
pub(crate) struct Pool {
    config: SqliteConfig,
    ns: i64,
    idle: Mutex<Vec<Db>>,
    places: Semaphore,
}

impl Pool {
    pub(crate) fn new(config: SqliteConfig, ns: i64) -> Self {
        Self { config, ns, idle: Mutex::default(), places: Semaphore::new(READERS_MAX) }
    }

    fn take(&self) -> Done<Db> {
        let idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        idle.map_or_else(|| open::reader(&self.config, self.ns), Ok)
    }

    fn put(&self, db: Db) {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).push(db);
    }

    fn read<R>(&self, work: impl FnOnce(&Db) -> Done<R>) -> Done<R> {
        let db = self.take()?;
        db.execute(include_str!("../sql/begin_read.sql"), [])?;
        let result = work(&db);
        // A connection that cannot end its transaction is not put back.
        db.execute(include_str!("../sql/rollback.sql"), [])?;
        self.put(db);
        result
    }
}

impl Readers {
    /// Runs `work` on one state of the store.
    pub(crate) async fn read<R, F>(&self, work: F) -> StoreResult<R>
    where
        F: Fn(&Db) -> Done<R> + Send + 'static,
        R: Send + 'static,
    {
        let pool = match self {
            Self::Writer(writer) => return writer.call(None, move |tx| work(tx.db)).await,
            Self::Pool(pool) => Arc::clone(pool),
        };
        let unavailable = |cause: String| Fault::Store(StoreError::Unavailable { cause });
        let waiting = Arc::clone(&pool);
        let place = waiting.places.acquire().await;
        let place = place.map_err(|error| unavailable(error.to_string()))?;
        let read = tokio::task::spawn_blocking(move || pool.read(work)).await;
        drop(place);
        Ok(read.map_err(|error| unavailable(error.to_string()))??)
    }
}
