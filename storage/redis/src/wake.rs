//! The wait for work: a blocking pop on the wake lists of some lanes, on a connection of its own.
//!
//! A token is a hint. Whoever takes one and does not use it (its future was dropped) costs the
//! others no more than the patience of their own wait.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::time::{Instant, sleep, timeout};

use crate::{
    conn::RedisConn,
    socket::{Link, Purpose},
};

/// The longest single wait on the server; then it is looked again whether the connection is good.
/// Longer than the worker's own patience, which is then one command and not two.
const WAIT_MAX: Duration = Duration::from_millis(1_500);
/// How much later than asked for the server may answer before the connection is given up.
const OVERRUN: Duration = Duration::from_secs(2);
/// The pause when the server cannot be reached.
const PAUSE: Duration = Duration::from_millis(100);
/// Connections that are kept when no wait uses them.
const IDLE_MAX: usize = 4;

/// The wake connections: one for each wait of this process that is under way, mostly one.
#[derive(Clone)]
pub(crate) struct Wake {
    conn: RedisConn,
    idle: Arc<Mutex<Vec<Link>>>,
}

impl Wake {
    pub(crate) fn new(conn: RedisConn) -> Self {
        Self { conn, idle: Arc::default() }
    }

    /// Returns when a token came to one of the lanes, when the server told nothing for a while,
    /// or after `patience`. Dropping the future closes its connection, which ends the wait on the
    /// server too.
    pub(crate) async fn wait(&self, lanes: &[String], patience: Duration) {
        let started = Instant::now();
        if lanes.is_empty() {
            return sleep(patience).await;
        }
        while let Some(left) =
            patience.checked_sub(started.elapsed()).filter(|left| !left.is_zero())
        {
            match self.once(lanes, left.min(WAIT_MAX)).await {
                Some(true) => return,
                Some(false) => {}
                None => sleep(left.min(PAUSE)).await,
            }
        }
    }

    /// One pop. None: the server could not be asked.
    async fn once(&self, lanes: &[String], patience: Duration) -> Option<bool> {
        let kept = self.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let link = match kept.filter(|link| !link.is_closed()) {
            Some(link) => link,
            None => self.conn.socket().link(Purpose::Wake).await.ok()?,
        };
        let mut command = redis::cmd("BLPOP");
        for lane in lanes {
            command.arg(self.conn.keys().wake(lane));
        }
        // A wait of 0 would have no end.
        command.arg(patience.as_secs_f64().max(0.001));
        let reply = timeout(patience + OVERRUN, link.send(&command)).await.ok()?.ok()?;
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < IDLE_MAX {
            idle.push(link);
        }
        Some(!matches!(reply, redis::Value::Nil))
    }
}

impl std::fmt::Debug for Wake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Wake").finish_non_exhaustive()
    }
}
