//! The wait for a run to change: one subscription connection for the process, a channel per run
//! that somebody follows.
//!
//! ```text
//! changed(run) -> entry of the run -> subscribed? -> wait for its number to rise
//!                                     subscribe       ^
//! listener: messages of the server ------------------/   lost connection: all waits end
//! ```

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures_util::StreamExt as _;
use holdpoint_graph::RunId;
use redis::aio::{PubSubSink, PubSubStream};
use tokio::{sync::watch, time::timeout};

use crate::{conn::RedisConn, script::Script};

/// Runs that stay subscribed; those that nobody waits for go first.
const FOLLOWED_MAX: usize = 1_024;

/// Tells of changes of runs.
#[derive(Clone)]
pub(crate) struct Follow {
    conn: RedisConn,
    entries: Arc<Entries>,
    line: Arc<tokio::sync::Mutex<Option<Line>>>,
}

/// The open subscription connection; the listener ends with it.
struct Line {
    sink: PubSubSink,
    listener: tokio::task::JoinHandle<()>,
}

impl Drop for Line {
    fn drop(&mut self) {
        self.listener.abort();
    }
}

/// A run that is subscribed.
#[derive(Debug, Default)]
struct Entry {
    /// How many changes were heard of.
    changes: watch::Sender<u64>,
    /// How many of them callers were told of.
    told: u64,
}

type Entries = Mutex<HashMap<String, Entry>>;

impl Follow {
    pub(crate) fn new(conn: RedisConn) -> Self {
        Self { conn, entries: Arc::default(), line: Arc::default() }
    }

    /// Returns when the run may have changed since the last call for it returned, or after
    /// `patience`. The first call for a run returns as soon as its changes are heard of: what
    /// happened before, its caller must read.
    pub(crate) async fn changed(&self, run: &RunId, patience: Duration) {
        let heard = timeout(patience, async {
            match self.untold(run) {
                Some(Some(mut changes)) => {
                    // The sender is gone with its connection: then the run may have changed too.
                    let _ended = changes.changed().await;
                    self.tell(run);
                }
                Some(None) => {}
                None if self.subscribe(run).await => {}
                None => std::future::pending().await,
            }
        });
        let _late = heard.await;
    }

    /// None: the run is not subscribed. Some: where to wait, if there is nothing to tell yet.
    fn untold(&self, run: &RunId) -> Option<Option<watch::Receiver<u64>>> {
        let mut entries = lock(&self.entries);
        let entry = entries.get_mut(run.as_str())?;
        let changes = *entry.changes.borrow();
        let is_told = entry.told == changes;
        entry.told = changes;
        Some(is_told.then(|| entry.changes.subscribe()))
    }

    fn tell(&self, run: &RunId) {
        if let Some(entry) = lock(&self.entries).get_mut(run.as_str()) {
            entry.told = *entry.changes.borrow();
        }
    }

    async fn subscribe(&self, run: &RunId) -> bool {
        let mut line = self.line.lock().await;
        if line.as_ref().is_none_or(|line| line.listener.is_finished()) {
            let Ok(pubsub) = self.conn.socket().pubsub().await else { return false };
            let (sink, stream) = pubsub.split();
            let entries = Arc::clone(&self.entries);
            let listener = tokio::spawn(listen(self.conn.clone(), stream, entries));
            *line = Some(Line { sink, listener });
        }
        let Some(open) = line.as_mut() else { return false };
        for old in self.unwanted() {
            // A channel that stays subscribed costs a message now and then.
            let _kept = open.sink.unsubscribe(old).await;
        }
        let is_heard = open.sink.subscribe(self.conn.keys().changes(run)).await.is_ok();
        let mut note = match self.conn.call(Script::Follow).await {
            Ok(note) if is_heard => note,
            Ok(_) | Err(_) => return false,
        };
        note.arg(run.as_str());
        let is_heard = self.conn.ask(note).await.is_ok();
        if is_heard {
            lock(&self.entries).entry(run.to_string()).or_default();
        } else {
            *line = None;
        }
        is_heard
    }

    /// The channels to give up, when there are too many.
    fn unwanted(&self) -> Vec<String> {
        let mut entries = lock(&self.entries);
        if entries.len() < FOLLOWED_MAX {
            return Vec::new();
        }
        let idle: Vec<String> = entries
            .iter()
            .filter(|(_, entry)| entry.changes.receiver_count() == 0)
            .map(|(run, _)| run.clone())
            .collect();
        for run in &idle {
            entries.remove(run);
        }
        let prefix = self.conn.keys().prefix();
        idle.iter().map(|run| format!("{prefix}f:{run}")).collect()
    }
}

/// Passes on what the server tells until the connection ends; then everybody looks for himself.
async fn listen(conn: RedisConn, mut stream: PubSubStream, entries: Arc<Entries>) {
    while let Some(message) = stream.next().await {
        let Some(run) = conn.keys().run_of(message.get_channel_name()) else { continue };
        if let Some(entry) = lock(&entries).get(run) {
            entry.changes.send_modify(|changes| *changes += 1);
        }
    }
    lock(&entries).clear();
}

fn lock(entries: &Entries) -> MutexGuard<'_, HashMap<String, Entry>> {
    entries.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Debug for Follow {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Follow").finish_non_exhaustive()
    }
}
