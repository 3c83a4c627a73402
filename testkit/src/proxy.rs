//! A relay between clients and a server that can be told to misbehave, as networks do.
//!
//! ```text
//! client ── TCP ──▶ Proxy ── TCP or Unix socket ──▶ server
//!                     ▲ mode of all, or of the connections that call themselves so
//! ```
//! It knows no protocol. A connection is told from others by what its client says at its
//! beginning, such as the name in a `CLIENT SETNAME` of Redis.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream},
    os::unix::net::UnixStream,
    path::PathBuf,
    sync::{
        Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use crate::RedisServer;

mod socket;

use socket::Socket;

/// How much of a client's beginning is searched for its name.
const HEARD_MAX: usize = 4096;

/// What a [`Proxy`] does with a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProxyMode {
    /// Everything passes.
    Pass,
    /// Each piece waits so long before it passes, in both directions.
    Delay(Duration),
    /// A black hole: connections are accepted and stay open, and nothing passes. What came
    /// meanwhile passes when the mode changes.
    Hold,
    /// Requests pass. The reply is dropped, and then the connection is closed.
    DropReplies,
    /// Connections are closed, those that are open and new ones at once.
    Refuse,
}

/// A relay between clients and a server; closes everything on drop.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Option<JoinHandle<()>>,
}

/// Where a proxy leads.
#[derive(Debug, Clone)]
enum Target {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

#[derive(Debug)]
struct Shared {
    target: Target,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug)]
struct State {
    mode: ProxyMode,
    named: Vec<(String, ProxyMode)>,
    open: BTreeMap<u64, Arc<Connection>>,
    accepted: u64,
    is_over: bool,
}

#[derive(Debug)]
struct Connection {
    client: Socket,
    server: OnceLock<Socket>,
    heard: Mutex<Vec<u8>>,
    is_cut: AtomicBool,
    is_forgotten: AtomicBool,
}

/// Which way something goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Request,
    Reply,
}

impl Proxy {
    /// A proxy in front of a Redis.
    ///
    /// # Panics
    ///
    /// When there is no free port on the loopback address.
    #[must_use]
    pub fn to_redis(server: &RedisServer) -> Self {
        Self::to(Target::Unix(server.socket()))
    }

    /// A proxy in front of whatever listens on this address; it may begin to later.
    ///
    /// # Panics
    ///
    /// When there is no free port on the loopback address.
    #[must_use]
    pub fn to_tcp(address: SocketAddr) -> Self {
        Self::to(Target::Tcp(address))
    }

    /// A proxy in front of whatever listens on this Unix socket; it may begin to later.
    ///
    /// # Panics
    ///
    /// When there is no free port on the loopback address.
    #[must_use]
    pub fn to_unix(path: impl Into<PathBuf>) -> Self {
        Self::to(Target::Unix(path.into()))
    }

    fn to(target: Target) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener.local_addr().expect("the address of a bound socket");
        let state = State {
            mode: ProxyMode::Pass,
            named: Vec::new(),
            open: BTreeMap::new(),
            accepted: 0,
            is_over: false,
        };
        let shared =
            Arc::new(Shared { target, state: Mutex::new(state), changed: Condvar::default() });
        let accepting = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || accept(&listener, &shared))
        };
        Self { address, shared, accepting: Some(accepting) }
    }

    /// Where clients connect.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where clients connect, as the URL of a Redis.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://{}", self.address)
    }

    /// Sets the mode of all connections, now open or to come, and forgets those by name.
    pub fn set(&self, mode: ProxyMode) {
        let mut state = self.shared.state();
        state.mode = mode;
        state.named.clear();
        self.shared.told(&state);
    }

    /// Sets the mode of the connections whose client said `name` at their beginning; it overrules
    /// the mode of all.
    pub fn set_named(&self, name: &str, mode: ProxyMode) {
        let mut state = self.shared.state();
        state.named.retain(|(known, _)| known != name);
        state.named.push((name.to_owned(), mode));
        self.shared.told(&state);
    }

    /// Closes all open connections now; new ones are as the mode says. Answers how many.
    pub fn cut(&self) -> usize {
        self.cut_those(|_| true)
    }

    /// Closes the open connections whose client said `name` at their beginning.
    pub fn cut_named(&self, name: &str) -> usize {
        self.cut_those(|connection| connection.said(name))
    }

    fn cut_those(&self, is_meant: impl Fn(&Connection) -> bool) -> usize {
        let state = self.shared.state();
        let meant = state.open.values().filter(|connection| is_meant(connection));
        let count = meant.map(|connection| connection.cut()).count();
        self.shared.changed.notify_all();
        count
    }

    /// Forgets all open connections, as a firewall does that was restarted: they stay open and
    /// nothing passes them ever again. New ones are as the mode says. Answers how many.
    pub fn forget(&self) -> usize {
        let state = self.shared.state();
        let forgotten = state.open.values();
        let count = forgotten.map(|open| open.is_forgotten.store(true, Ordering::Release)).count();
        self.shared.changed.notify_all();
        count
    }

    /// How many connections are open.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.shared.state().open.len()
    }

    /// How many connections whose client said `name` at their beginning are open.
    #[must_use]
    pub fn connections_named(&self, name: &str) -> usize {
        let state = self.shared.state();
        state.open.values().filter(|connection| connection.said(name)).count()
    }

    /// How many connections were accepted since the start.
    #[must_use]
    pub fn accepted(&self) -> u64 {
        self.shared.state().accepted
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.state().is_over = true;
        self.cut();
        // Wakes the thread that accepts.
        let _ = TcpStream::connect(self.address);
        if let Some(accepting) = self.accepting.take() {
            let _ended = accepting.join();
        }
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes all connections see the new modes.
    fn told(&self, state: &State) {
        for connection in state.open.values() {
            if state.mode_of(connection) == ProxyMode::Refuse {
                connection.cut();
            }
        }
        self.changed.notify_all();
    }

    /// Waits until something may pass and says how; None when the connection is closed.
    fn passage(&self, connection: &Connection) -> Option<ProxyMode> {
        let mut state = self.state();
        loop {
            if connection.is_cut.load(Ordering::Acquire) {
                return None;
            }
            match state.mode_of(connection) {
                ProxyMode::Hold => {}
                ProxyMode::Refuse => {
                    connection.cut();
                    return None;
                }
                mode @ (ProxyMode::Pass | ProxyMode::Delay(_) | ProxyMode::DropReplies) => {
                    return Some(mode);
                }
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl State {
    fn mode_of(&self, connection: &Connection) -> ProxyMode {
        if connection.is_forgotten.load(Ordering::Acquire) {
            return ProxyMode::Hold;
        }
        let named = self.named.iter().find(|(name, _)| connection.said(name));
        named.map_or(self.mode, |(_, mode)| *mode)
    }
}

impl Connection {
    fn said(&self, name: &str) -> bool {
        let heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.windows(name.len().max(1)).any(|part| part == name.as_bytes())
    }

    fn hear(&self, piece: &[u8]) {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        let room = HEARD_MAX.saturating_sub(heard.len()).min(piece.len());
        heard.extend_from_slice(piece.get(..room).unwrap_or_default());
    }

    fn cut(&self) {
        self.is_cut.store(true, Ordering::Release);
        self.client.shutdown(Shutdown::Both);
        if let Some(server) = self.server.get() {
            server.shutdown(Shutdown::Both);
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    while let Ok((client, _)) = listener.accept() {
        let connection = Arc::new(Connection {
            client: Socket::Tcp(client),
            server: OnceLock::new(),
            heard: Mutex::default(),
            is_cut: AtomicBool::new(false),
            is_forgotten: AtomicBool::new(false),
        });
        let number = {
            let mut state = shared.state();
            if state.is_over {
                return;
            }
            state.accepted += 1;
            let number = state.accepted;
            state.open.insert(number, Arc::clone(&connection));
            number
        };
        let shared = Arc::clone(shared);
        thread::spawn(move || {
            relay(&shared, &connection);
            connection.cut();
            shared.state().open.remove(&number);
        });
    }
}

/// Relays a connection until both sides have closed it.
fn relay(shared: &Shared, connection: &Connection) {
    if shared.passage(connection).is_none() {
        return;
    }
    let Ok(server) = shared.target.connect() else { return };
    let server = connection.server.get_or_init(|| server);
    // It may have been cut before there was a server's side to close.
    if shared.passage(connection).is_none() {
        return;
    }
    thread::scope(|scope| {
        scope.spawn(|| pump(shared, connection, (&connection.client, server), Way::Request));
        pump(shared, connection, (server, &connection.client), Way::Reply);
    });
}

/// Passes on what comes one way until its end.
fn pump(shared: &Shared, connection: &Connection, (from, to): (&Socket, &Socket), way: Way) {
    let mut buffer = [0; 64 << 10];
    loop {
        let length = from.read(&mut buffer).unwrap_or(0);
        let piece = buffer.get(..length).unwrap_or_default();
        if way == Way::Request {
            connection.hear(piece);
        }
        match (shared.passage(connection), way) {
            (Some(ProxyMode::Delay(time)), _) => thread::sleep(time),
            (Some(ProxyMode::DropReplies), Way::Reply) if length > 0 => return connection.cut(),
            (Some(_), Way::Request | Way::Reply) => {}
            (None, _) => return,
        }
        if length == 0 {
            return to.shutdown(Shutdown::Write);
        }
        if to.write_all(piece).is_err() {
            return connection.cut();
        }
    }
}

impl Target {
    fn connect(&self) -> std::io::Result<Socket> {
        match self {
            Self::Tcp(address) => TcpStream::connect(address).map(Socket::Tcp),
            Self::Unix(path) => UnixStream::connect(path).map(Socket::Unix),
        }
    }
}

#[cfg(test)]
mod tests;
