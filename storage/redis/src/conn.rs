//! `RedisConn`: the one way to the server. It hides the client library, keeps the connections
//! alive, loads the scripts, and repeats a call whose answer got lost, under the same request id.
//!
//! ```text
//! call -> sentinel known? -> connection open? -> EVALSHA -> reply | Fault
//!            init               check, load                 load and repeat, reopen and repeat,
//!                                                           or an error
//! ```

mod entry;

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicUsize, Ordering},
};
use std::time::Duration;

use holdpoint_graph::RequestId;
use holdpoint_storage::{Durability, Random, StoreError};
use redis::Value;
use tokio::time::{Instant, sleep};

use crate::{
    RedisConfig,
    call::{Call, natural},
    checks::{self, Facts},
    error::{Fault, not_connected},
    guard::Guard,
    keys::Keys,
    script::{Script, Scripts},
    socket::{Link, Purpose, Socket},
};

/// The same while the server is refused.
const CHECK_AGAIN: Duration = Duration::from_secs(1);
/// The pause before a call is repeated grows from the first to the last.
const PAUSES_MS: [u64; 6] = [2, 10, 30, 100, 200, 400];
/// How often one call gives its scripts to a server that forgets them.
const LOADS_MAX: u32 = 3;
/// The version of the layout, first in the sentinel.
const LAYOUT: &str = "1";
/// Connections when the server syncs each write.
const CONNECTIONS_ALWAYS: usize = 4;

/// A handle on a server; cheap to clone.
#[derive(Clone)]
pub(crate) struct RedisConn(Arc<Shared>);

struct Shared {
    config: RedisConfig,
    keys: Keys,
    scripts: Scripts,
    socket: Socket,
    slots: Vec<Slot>,
    next: AtomicUsize,
    state: Mutex<State>,
    entering: tokio::sync::Mutex<()>,
    guard: Guard,
}

/// A place for one connection.
#[derive(Default)]
struct Slot {
    link: Mutex<Option<Link>>,
    /// How the last opening failed.
    opening: tokio::sync::Mutex<Option<(Instant, StoreError)>>,
}

/// What this process knows of the server.
#[derive(Debug, Default)]
struct State {
    sentinel: Option<Arc<str>>,
    facts: Option<Facts>,
    checked: Option<Instant>,
    refusal: Option<StoreError>,
}

impl RedisConn {
    /// Connects, checks the server, and makes the namespace when it is new.
    pub(crate) async fn connect(config: RedisConfig) -> Result<Self, StoreError> {
        let socket = Socket::new(&config)?;
        let purpose = Purpose::Commands(config.response_timeout);
        let first = socket.link(purpose).await?;
        let facts = checks::read(&first, &config).await?;
        let server = facts.server.clone();
        let wanted = match (config.connections, facts.durability) {
            (0, Durability::Buffered) => 1,
            (0, Durability::Fsynced | Durability::Replicated) => CONNECTIONS_ALWAYS,
            (count, _) => count,
        };
        let shared = Shared {
            keys: Keys::new(&config.namespace),
            scripts: Scripts::new(),
            socket,
            slots: (0..wanted).map(|_| Slot::default()).collect(),
            next: AtomicUsize::new(0),
            state: Mutex::default(),
            entering: tokio::sync::Mutex::new(()),
            guard: Guard::default(),
            config,
        };
        let conn = Self(Arc::new(shared));
        conn.remember(facts);
        conn.load(&first).await.map_err(|fault| fault.into_error(&natural(), false))?;
        for (n, slot) in conn.0.slots.iter().enumerate() {
            let link = match n {
                0 => first.clone(),
                _ => conn.0.socket.link(purpose).await?,
            };
            link.is_of(&server);
            *lock(&slot.link) = Some(link);
        }
        conn.sentinel().await?;
        conn.look().await;
        Ok(conn)
    }

    pub(crate) fn config(&self) -> &RedisConfig {
        &self.0.config
    }

    pub(crate) fn guard(&self) -> &Guard {
        &self.0.guard
    }

    pub(crate) fn keys(&self) -> &Keys {
        &self.0.keys
    }

    pub(crate) fn socket(&self) -> &Socket {
        &self.0.socket
    }

    /// How many connections there are for calls.
    pub(crate) fn connections(&self) -> usize {
        self.0.slots.len()
    }

    /// The level that an acknowledgement reaches by the last checks.
    pub(crate) fn durability(&self) -> Durability {
        let state = lock(&self.0.state);
        state.facts.as_ref().map_or(Durability::Buffered, |facts| facts.durability)
    }

    /// Reads the settings again when that was long ago; a server that became unsafe is refused
    /// from then on until it is safe again.
    pub(crate) async fn recheck(&self) -> Result<(), StoreError> {
        let (checked, every) = {
            let state = lock(&self.0.state);
            let every = state.refusal.as_ref().map_or(self.0.config.check_every, |_| CHECK_AGAIN);
            (state.checked, every)
        };
        if checked.is_none_or(|at| at.elapsed() >= every) {
            self.facts().await.map(|_| ())?;
        }
        self.is_safe()
    }

    /// Whether the server passed its last checks.
    pub(crate) fn is_safe(&self) -> Result<(), StoreError> {
        lock(&self.0.state).refusal.clone().map_or(Ok(()), Err)
    }

    /// Reads the settings now.
    pub(crate) async fn facts(&self) -> Result<Facts, StoreError> {
        let link = self.link(self.slot()).await?;
        match checks::read(&link, &self.0.config).await {
            Ok(facts) => {
                self.remember(facts.clone());
                Ok(facts)
            }
            Err(error) => {
                self.refuse(&error);
                Err(error)
            }
        }
    }

    /// Remembers why the server may not be used.
    fn refuse(&self, error: &StoreError) {
        if matches!(error, StoreError::Refused(_)) {
            let mut state = lock(&self.0.state);
            state.refusal = Some(error.clone());
            state.checked = Some(Instant::now());
        }
    }

    fn remember(&self, facts: Facts) {
        let mut state = lock(&self.0.state);
        state.facts = Some(facts);
        state.checked = Some(Instant::now());
        state.refusal = None;
    }

    /// Sends a plain command that reads; once more when its connection turns out to be broken.
    pub(crate) async fn command(&self, command: &redis::Cmd) -> Result<Value, StoreError> {
        let slot = self.slot();
        let link = self.link(slot).await?;
        let error = match link.send(command).await {
            Ok(reply) => return Ok(reply),
            Err(error) => error,
        };
        let fault = Fault::of(&error);
        self.judge(slot, &link, &fault);
        if !matches!(fault, Fault::Unknown(_)) {
            return Err(not_connected(&error));
        }
        let link = self.link(slot).await?;
        link.send(command).await.map_err(|error| not_connected(&error))
    }

    /// Begins a call of a script.
    pub(crate) async fn call(&self, script: Script) -> Result<Call, StoreError> {
        self.is_whole().await?;
        self.call_anyway(script).await
    }

    /// Begins a call of a script that looks at damage, or mends it.
    pub(crate) async fn call_anyway(&self, script: Script) -> Result<Call, StoreError> {
        let sentinel = self.sentinel().await?;
        let mut command = redis::Cmd::with_capacity(16, 512);
        command.arg("EVALSHA").arg(self.0.scripts.hash(script)).arg(1).arg(self.0.keys.meta());
        command.arg(&*sentinel);
        Ok(Call::new(script, command, sentinel))
    }

    /// Sends a call that reads or has a natural key.
    pub(crate) async fn ask(&self, call: Call) -> Result<Value, StoreError> {
        self.send(call, &natural()).await
    }

    /// Sends a call. A repeat after a lost answer is the same request, so it has one effect.
    pub(crate) async fn send(&self, call: Call, request: &RequestId) -> Result<Value, StoreError> {
        let started = Instant::now();
        let slot = self.slot();
        let mut is_sent = false;
        let mut loads = 0;
        let mut attempt = 0;
        loop {
            let fault = match self.link(slot).await {
                Err(error) if !is_sent || !error.is_retryable() => return Err(error),
                Err(error) => Fault::Refused { cause: error.to_string(), is_stale: false },
                Ok(link) => match self.try_once(slot, &link, &call, &mut loads).await {
                    Ok(value) => return Ok(value),
                    Err(fault) => fault,
                },
            };
            is_sent |= matches!(fault, Fault::Unknown(_) | Fault::Late(_));
            if matches!(fault, Fault::Reset) {
                return Err(self.was_reset(&call));
            }
            let is_final = matches!(fault, Fault::Final(_) | Fault::NoScript);
            let pause = Duration::from_millis(*PAUSES_MS.get(attempt).unwrap_or(&400));
            if is_final || !is_sent || started.elapsed() + pause > self.0.config.patience {
                return Err(fault.into_error(request, is_sent));
            }
            tracing::debug!(script = ?call.script, ?fault, "repeats a call");
            sleep(pause).await;
            attempt += 1;
        }
    }

    /// Sends a call over one connection, to which it gives the scripts when it has lost them.
    async fn try_once(
        &self,
        slot: &Slot,
        link: &Link,
        call: &Call,
        loads: &mut u32,
    ) -> Result<Value, Fault> {
        let sent = Instant::now();
        loop {
            let fault = match call.send_over(link).await {
                Ok(value) => return Ok(value),
                Err(error) => Fault::of(&error),
            };
            if matches!(fault, Fault::NoScript) && *loads < LOADS_MAX {
                *loads += 1;
                self.load(link).await?;
                continue;
            }
            if matches!(fault, Fault::Late(_)) && !link.has_heard_since(sent) {
                self.drop_silent(sent);
            }
            self.judge(slot, link, &fault);
            return Err(fault);
        }
    }

    /// Gives up all connections on which nothing was heard since then. The one that was asked is
    /// dead or its server stalls; to find out the same of the others one by one takes too long.
    fn drop_silent(&self, since: Instant) {
        for slot in &self.0.slots {
            let mut kept = lock(&slot.link);
            if kept.as_ref().is_some_and(|link| !link.has_heard_since(since)) {
                *kept = None;
            }
        }
    }

    /// Gives up a connection that is of no use after this.
    fn judge(&self, slot: &Slot, link: &Link, fault: &Fault) {
        let is_bad = match fault {
            Fault::Unknown(_) => true,
            Fault::Late(_) => link.is_late_again(),
            Fault::Refused { is_stale, .. } => *is_stale,
            Fault::NoScript | Fault::Reset | Fault::Final(_) => false,
        };
        let mut kept = lock(&slot.link);
        if is_bad && kept.as_ref().is_some_and(|kept| kept.is_same(link)) {
            *kept = None;
        }
    }

    fn slot(&self) -> &Slot {
        let next = self.0.next.fetch_add(1, Ordering::Relaxed);
        let slots = &self.0.slots;
        slots.get(next % slots.len()).expect("there is at least one connection")
    }

    /// The connection of a slot; opened, checked and given the scripts when there is none.
    async fn link(&self, slot: &Slot) -> Result<Link, StoreError> {
        let open = || lock(&slot.link).clone().filter(|link| !link.is_closed());
        if let Some(link) = open() {
            return Ok(link);
        }
        let asked = Instant::now();
        let mut failed = slot.opening.lock().await;
        if let Some(link) = open() {
            return Ok(link);
        }
        // Whoever waited while another tried in vain need not find out the same.
        if let Some((at, error)) = &*failed
            && *at >= asked
        {
            return Err(error.clone());
        }
        let opened = self.open(slot).await;
        *failed = opened.as_ref().err().map(|error| (Instant::now(), error.clone()));
        opened
    }

    async fn open(&self, slot: &Slot) -> Result<Link, StoreError> {
        let link = self.0.socket.link(Purpose::Commands(self.0.config.response_timeout)).await?;
        let facts = checks::read(&link, &self.0.config).await.map_err(|error| {
            // It passed when this process began, so it may again; who owns a run waits for that.
            self.refuse(&error);
            match error {
                StoreError::Refused(refusal) => {
                    StoreError::Unavailable { cause: format!("{} {refusal}", refusal.code()) }
                }
                other => other,
            }
        })?;
        link.is_of(&facts.server);
        self.remember(facts);
        self.load(&link).await.map_err(|fault| fault.into_error(&natural(), false))?;
        *lock(&slot.link) = Some(link.clone());
        Ok(link)
    }

    async fn load(&self, link: &Link) -> Result<(), Fault> {
        let mut pipeline = redis::pipe();
        for text in self.0.scripts.texts() {
            pipeline.cmd("SCRIPT").arg("LOAD").arg(text);
        }
        link.send_all(&pipeline).await.map(|_| ()).map_err(|error| Fault::of(&error))
    }
}

/// Locks, also after a panic elsewhere: the values are replaced as a whole.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl std::fmt::Debug for RedisConn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisConn").field("config", &self.0.config).finish_non_exhaustive()
    }
}
