//! Commits of one process leave together: what waits while calls are under way goes with the next
//! one, in one script, which judges and answers each for itself.
//!
//! ```text
//! commit ─┐              ┌ flight: one EVALSHA of up to 16 ─▶ an answer for each
//! commit ─┼─▶ waiting ─▶ │
//! commit ─┘              └ flight
//! ```

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use holdpoint_graph::RequestId;
use holdpoint_storage::{StoreError, StoreResult};
use redis::{Cmd, Value};
use tokio::sync::oneshot;

use crate::{codec::Parts, conn::RedisConn, script::Script};

/// Commits of one script: it holds the server for less than a millisecond.
const COMMITS_MAX: usize = 16;
/// The bytes after which no further commit is added to a script.
const BYTES_MAX: usize = 1 << 20;
/// Calls under way for each connection: while one is answered, the server has the next.
const FLIGHTS_EACH: usize = 2;

/// The way of commits to the server. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Batches {
    conn: RedisConn,
    waiting: Arc<Mutex<Waiting>>,
}

#[derive(Default)]
struct Waiting {
    commits: VecDeque<Commit>,
    flights: usize,
}

/// A commit on its way.
struct Commit {
    request: RequestId,
    args: Cmd,
    bytes: usize,
    caller: oneshot::Sender<StoreResult<Answer>>,
}

/// What the script answers to one commit.
pub(crate) struct Answer {
    /// The store's time.
    pub(crate) now_ms: i64,
    /// The script's word.
    pub(crate) word: Value,
}

impl Batches {
    pub(crate) fn new(conn: RedisConn) -> Self {
        Self { conn, waiting: Arc::default() }
    }

    /// Sends a commit, given by its arguments, and returns the script's answer to it. A future
    /// that is dropped leaves nothing or the whole effect.
    pub(crate) async fn commit(
        &self,
        request: &RequestId,
        args: Cmd,
        bytes: usize,
    ) -> StoreResult<Answer> {
        let (caller, answer) = oneshot::channel();
        let commit = Commit { request: request.clone(), args, bytes, caller };
        let takes_off = {
            let mut waiting = self.lock();
            waiting.commits.push_back(commit);
            let takes_off = waiting.flights < self.conn.connections() * FLIGHTS_EACH;
            waiting.flights += usize::from(takes_off);
            takes_off
        };
        if takes_off {
            tokio::spawn(Flight { batches: self.clone(), is_over: false }.fly());
        }
        answer.await.unwrap_or_else(|_| {
            let cause = "the runtime ended".to_owned();
            Err(StoreError::UnknownOutcome { request: request.clone(), cause })
        })
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sends commits in one script and answers them.
    async fn send(&self, batch: Vec<Commit>) {
        match self.call(&batch).await {
            Ok(answers) => {
                for (commit, answer) in batch.into_iter().zip(answers) {
                    // A caller that went away wants no answer.
                    drop(commit.caller.send(Ok(answer)));
                }
            }
            // One of them is about a damaged run, which must not fail its neighbours.
            Err(StoreError::Corrupt { .. }) if batch.len() > 1 => {
                for commit in batch {
                    Box::pin(self.send(vec![commit])).await;
                }
            }
            Err(error) => {
                for commit in batch {
                    let error = of(&commit.request, error.clone());
                    drop(commit.caller.send(Err(error)));
                }
            }
        }
    }

    async fn call(&self, batch: &[Commit]) -> StoreResult<Vec<Answer>> {
        let Some(first) = batch.first() else { return Ok(Vec::new()) };
        let mut call = self.conn.call(Script::Commits).await?;
        for commit in batch {
            call.args(&commit.args);
        }
        let reply = self.conn.send(call, &first.request).await?;
        let mut parts = Parts::of(reply, "the reply to commits")?;
        let now_ms = parts.number()?;
        let answers = batch.iter().map(|_| Ok(Answer { now_ms, word: parts.next()? }));
        answers.collect()
    }
}

impl fmt::Debug for Batches {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batches").finish_non_exhaustive()
    }
}

/// An error of a call as the error of one of its commits.
fn of(request: &RequestId, error: StoreError) -> StoreError {
    if let StoreError::UnknownOutcome { cause, .. } = error {
        return StoreError::UnknownOutcome { request: request.clone(), cause };
    }
    error
}

/// Sends what waits, call after call, until nothing does.
struct Flight {
    batches: Batches,
    is_over: bool,
}

impl Flight {
    async fn fly(mut self) {
        while let Some(batch) = self.next() {
            self.batches.send(batch).await;
        }
    }

    fn next(&mut self) -> Option<Vec<Commit>> {
        let mut waiting = self.batches.lock();
        let (mut batch, mut bytes) = (Vec::new(), 0);
        while batch.len() < COMMITS_MAX && bytes < BYTES_MAX {
            let Some(commit) = waiting.commits.pop_front() else { break };
            bytes += commit.bytes;
            batch.push(commit);
        }
        if batch.is_empty() {
            waiting.flights -= 1;
            self.is_over = true;
            return None;
        }
        Some(batch)
    }
}

/// A flight that ends early went down with its runtime, and so does what waits.
impl Drop for Flight {
    fn drop(&mut self) {
        if !self.is_over {
            let mut waiting = self.batches.lock();
            waiting.flights -= 1;
            waiting.commits.clear();
        }
    }
}
