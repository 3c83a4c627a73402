//! The one thread of a process that writes to the file.
//!
//! ```text
//! call ─┐                       ┌ BEGIN IMMEDIATE
//! call ─┼─▶ bounded channel ─▶  │ each call, one after another
//! call ─┘                       └ COMMIT ─▶ all replies, then wake-ups
//! ```
//!
//! While one group is on its way to the disk the next one gathers, so the number of syncs per
//! second, not of calls, is what the disk limits. Calls validate before they write; one that
//! fails after it wrote takes the whole group back, and then each call runs on its own.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, sync_channel},
    },
    thread,
    time::Duration,
};

use holdpoint_graph::RequestId;
use holdpoint_storage::{Lane, SharedClock, StoreError, StoreResult};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tracing::{error, warn};

use crate::{
    db::Db,
    fault::{self, Done, Fault},
    tx::{Changes, Tx},
    wake::Wake,
};

/// Calls that may wait for the writer: a few groups, so that memory stays bounded and a caller
/// that is too fast feels it.
const CALLS_MAX: usize = 1_024;
/// Calls of one group: more would let the first of them wait for long.
const GROUP_CALLS_MAX: usize = 256;
/// How long a group gathers calls.
const GROUP_TIME_MAX: Duration = Duration::from_millis(5);
/// How often another process is looked for while somebody waits.
const POLL: Duration = Duration::from_millis(20);

/// The writer's mailbox.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    calls: SyncSender<Message>,
    places: Arc<Semaphore>,
    /// Whether a [`Message::Look`] is in the mailbox: there is never a second one, so a call that
    /// has a place finds room.
    has_look: Arc<AtomicBool>,
}

enum Message {
    Call(Box<dyn Call>, OwnedSemaphorePermit),
    /// Somebody began to wait: look after other processes.
    Look,
}

/// A call on its way through the thread.
trait Call: Send {
    /// Does it, and keeps the reply.
    fn run(&mut self, tx: &mut Tx<'_>) -> Done<()>;
    /// Answers, once the fate of the transaction is known.
    fn answer(self: Box<Self>, fate: Fate<'_>);
}

/// What became of a call.
enum Fate<'e> {
    /// It was committed.
    Stored,
    /// It failed by itself.
    Failed(Fault),
    /// Its group was not committed.
    Lost(&'e rusqlite::Error),
}

struct Job<F, R> {
    work: F,
    request: Option<RequestId>,
    reply: Option<R>,
    caller: oneshot::Sender<StoreResult<R>>,
}

impl<F, R> Call for Job<F, R>
where
    F: FnMut(&mut Tx<'_>) -> Done<R> + Send,
    R: Send,
{
    fn run(&mut self, tx: &mut Tx<'_>) -> Done<()> {
        self.reply = Some((self.work)(tx)?);
        Ok(())
    }

    fn answer(self: Box<Self>, fate: Fate<'_>) {
        let result = match (fate, self.reply) {
            (Fate::Stored, Some(reply)) => Ok(reply),
            (Fate::Stored, None) => Err(stopped()),
            (Fate::Failed(fault), _) => Err(fault.into()),
            (Fate::Lost(error), _) => Err(fault::of_commit(error, self.request.as_ref())),
        };
        // A caller that went away wants no answer.
        drop(self.caller.send(result));
    }
}

impl Writer {
    /// Starts the thread; it ends when the last handle is dropped.
    pub(crate) fn start(db: Db, clock: SharedClock, wake: Arc<Wake>) -> std::io::Result<Self> {
        let (calls, mailbox) = sync_channel(CALLS_MAX + 1);
        let has_look = Arc::new(AtomicBool::new(false));
        let state = Thread {
            db,
            clock,
            wake,
            has_look: Arc::clone(&has_look),
            lease_ms_max: 0,
            data_version: 0,
        };
        thread::Builder::new().name("holdpoint-sqlite".to_owned()).spawn(|| state.run(mailbox))?;
        Ok(Self { calls, places: Arc::new(Semaphore::new(CALLS_MAX)), has_look })
    }

    /// Runs `work` in a transaction and returns once that is committed. `work` may run twice,
    /// each time on the state before it. A future that is dropped leaves nothing or the whole.
    pub(crate) async fn call<F, R>(&self, request: Option<RequestId>, work: F) -> StoreResult<R>
    where
        F: FnMut(&mut Tx<'_>) -> Done<R> + Send + 'static,
        R: Send + 'static,
    {
        let place = Arc::clone(&self.places).acquire_owned().await.map_err(|_| stopped())?;
        let (caller, reply) = oneshot::channel();
        let job = Job { work, request, reply: None, caller };
        self.calls.send(Message::Call(Box::new(job), place)).map_err(|_| stopped())?;
        reply.await.map_err(|_| stopped())?
    }

    /// Tells the thread that somebody waits.
    pub(crate) fn look(&self) {
        let is_first = !self.has_look.swap(true, Ordering::AcqRel);
        if is_first && self.calls.try_send(Message::Look).is_err() {
            // A full mailbox means that the thread is awake anyway.
            self.has_look.store(false, Ordering::Release);
        }
    }
}

fn stopped() -> StoreError {
    StoreError::Unavailable { cause: "the thread that writes has ended".to_owned() }
}

struct Thread {
    db: Db,
    clock: SharedClock,
    wake: Arc<Wake>,
    has_look: Arc<AtomicBool>,
    /// The longest lease that is known to be stored; a cache.
    lease_ms_max: i64,
    /// What SQLite last said; it moves with the commits of other connections.
    data_version: i64,
}

/// A call that ran, and how it failed if it did.
struct Ran {
    call: Box<dyn Call>,
    fault: Option<Fault>,
    _place: OwnedSemaphorePermit,
}

impl Thread {
    fn run(mut self, mailbox: Receiver<Message>) {
        self.look();
        while let Some(message) = self.next(&mailbox) {
            match message {
                Message::Call(call, place) => self.group((call, place), &mailbox),
                Message::Look => self.has_look.store(false, Ordering::Release),
            }
            self.look();
        }
    }

    /// The next message; none when nobody has a handle any more.
    fn next(&mut self, mailbox: &Receiver<Message>) -> Option<Message> {
        loop {
            if !self.wake.has_waiters() {
                return mailbox.recv().ok();
            }
            match mailbox.recv_timeout(POLL) {
                Ok(message) => return Some(message),
                Err(RecvTimeoutError::Timeout) => self.look(),
                Err(RecvTimeoutError::Disconnected) => return None,
            }
        }
    }

    /// Tells everybody who waits when another connection has committed something.
    fn look(&mut self) {
        if !self.wake.has_waiters() {
            return;
        }
        match self.db.number(include_str!("../sql/data_version.sql"), []) {
            Ok(version) if version != self.data_version => {
                self.data_version = version;
                self.wake.tell_all();
            }
            Ok(_) => {}
            Err(fault) => warn!(error = %StoreError::from(fault), "failed to look for changes"),
        }
    }

    fn group(&mut self, first: (Box<dyn Call>, OwnedSemaphorePermit), mailbox: &Receiver<Message>) {
        let mut first = Some(first);
        let start = self.clock.monotonic();
        let (clock, has_look) = (Arc::clone(&self.clock), Arc::clone(&self.has_look));
        let more = move |done: usize| {
            if let Some(call) = first.take() {
                return Some(call);
            }
            let elapsed = clock.monotonic().saturating_duration_since(start);
            if done >= GROUP_CALLS_MAX || elapsed >= GROUP_TIME_MAX {
                return None;
            }
            loop {
                match mailbox.try_recv() {
                    Ok(Message::Call(call, place)) => return Some((call, place)),
                    Ok(Message::Look) => has_look.store(false, Ordering::Release),
                    Err(TryRecvError::Empty | TryRecvError::Disconnected) => return None,
                }
            }
        };
        for alone in self.transaction(more) {
            let mut alone = Some(alone);
            self.transaction(|_| alone.take());
        }
    }

    /// Runs calls in one transaction and answers them. Returns the calls of a group that was
    /// taken back because one of them failed half-way: each has to run on its own.
    fn transaction<M>(&mut self, mut more: M) -> Vec<(Box<dyn Call>, OwnedSemaphorePermit)>
    where
        M: FnMut(usize) -> Option<(Box<dyn Call>, OwnedSemaphorePermit)>,
    {
        let mut group: Vec<Ran> = Vec::new();
        let begun = self.db.execute(include_str!("../sql/begin.sql"), []);
        let is_begun = begun.is_ok();
        if let Err(fault) = begun {
            let error = StoreError::from(fault);
            while let Some((call, place)) = more(group.len()) {
                let fault = Some(Fault::Store(error.clone()));
                group.push(Ran { call, fault, _place: place });
            }
        }
        if !is_begun {
            answer(group, None);
            return Vec::new();
        }
        let mut tx = Tx::new(&self.db, self.clock.wall_us(), &mut self.lease_ms_max);
        let mut is_half_done = false;
        while let Some((mut call, place)) = more(group.len()) {
            let before = self.db.conn.total_changes();
            let fault = call.run(&mut tx).err();
            is_half_done = fault.is_some() && self.db.conn.total_changes() != before;
            group.push(Ran { call, fault, _place: place });
            if is_half_done {
                break;
            }
        }
        let finished = if is_half_done { None } else { Some(tx.finish()) };
        self.end(group, finished)
    }

    fn end(
        &mut self,
        mut group: Vec<Ran>,
        finished: Option<Done<Changes>>,
    ) -> Vec<(Box<dyn Call>, OwnedSemaphorePermit)> {
        match finished {
            Some(Ok(changes)) => match self.commit() {
                Ok(()) => {
                    // Told before the callers are answered: whoever waits after a call that
                    // was answered hears of later ones only.
                    self.tell(&changes);
                    answer(group, None);
                }
                Err(error) => {
                    self.roll_back();
                    answer(group, Some(&error));
                }
            },
            Some(Err(fault)) => {
                self.roll_back();
                let error = StoreError::from(fault);
                for ran in &mut group {
                    ran.fault.get_or_insert_with(|| Fault::Store(error.clone()));
                }
                answer(group, None);
            }
            None => {
                self.roll_back();
                if group.len() > 1 {
                    return group.into_iter().map(|ran| (ran.call, ran._place)).collect();
                }
                answer(group, None);
            }
        }
        Vec::new()
    }

    fn commit(&self) -> rusqlite::Result<()> {
        self.db.conn.prepare_cached(include_str!("../sql/commit.sql"))?.execute([]).map(drop)
    }

    fn roll_back(&mut self) {
        self.db.lane_cache.borrow_mut().clear();
        self.lease_ms_max = 0;
        if self.db.conn.is_autocommit() {
            return;
        }
        if let Err(fault) = self.db.execute(include_str!("../sql/rollback.sql"), []) {
            error!(error = %StoreError::from(fault), "failed to take a transaction back");
        }
    }

    fn tell(&self, changes: &Changes) {
        if !self.wake.has_waiters() {
            return;
        }
        if changes.has_resumed {
            self.wake.tell_all();
        }
        let lanes: Vec<Lane> =
            changes.lanes.iter().filter_map(|number| self.db.lanes().get(*number).ok()).collect();
        self.wake.tell(&lanes, |run| changes.runs.contains(run));
    }
}

fn answer(group: Vec<Ran>, lost: Option<&rusqlite::Error>) {
    for ran in group {
        let fate = match (ran.fault, lost) {
            (Some(fault), _) => Fate::Failed(fault),
            (None, Some(error)) => Fate::Lost(error),
            (None, None) => Fate::Stored,
        };
        ran.call.answer(fate);
    }
}
