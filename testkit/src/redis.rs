//! A real `redis-server` for one test.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tempfile::TempDir;

use crate::scratch::temp_folder;
use crate::until::{Deadline, pause};
use crate::{Signal, signal};

mod config;

pub use config::{Appendfsync, RedisConfig};

/// How long a server may take until it answers; loading a large AOF takes most of it.
const READY_WITHIN: Duration = Duration::from_secs(30);
/// How many free ports to try before giving up; another process may take one from under us.
const PORTS_TO_TRY: u32 = 5;

/// A `redis-server` with its own folder, on a Unix socket in it; killed on drop.
///
/// The methods take `&self`, so a test can share it with the tasks that work on it.
#[derive(Debug)]
pub struct RedisServer {
    folder: TempDir,
    port: Option<u16>,
    env: Vec<(OsString, OsString)>,
    child: Mutex<Child>,
}

impl RedisServer {
    /// Starts a server in the durable mode: append-only file, synced at each write.
    ///
    /// # Panics
    ///
    /// When `redis-server` is not installed or does not start.
    #[must_use]
    pub fn start() -> Self {
        RedisConfig::default().start()
    }

    /// Like [`Self::start`], and also on a free TCP port of the loopback address.
    ///
    /// # Panics
    ///
    /// When `redis-server` is not installed or does not start.
    #[must_use]
    pub fn start_tcp() -> Self {
        RedisConfig::default().tcp().start()
    }

    /// A configuration to change before the start.
    pub fn config() -> RedisConfig {
        RedisConfig::default()
    }

    /// The URL for clients: `redis://127.0.0.1:PORT` if it has a port, else
    /// `redis+unix:///PATH/redis.sock`.
    #[must_use]
    pub fn url(&self) -> String {
        match self.port {
            Some(port) => format!("redis://127.0.0.1:{port}"),
            None => format!("redis+unix://{}", self.socket().display()),
        }
    }

    /// The path of the Unix socket.
    #[must_use]
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("redis.sock")
    }

    /// The folder with the append-only files, the configuration and the server's log.
    #[must_use]
    pub fn folder(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    /// The process id of the server.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child().id()
    }

    /// `kill -9`, and waits for the end; what was not yet written is gone.
    ///
    /// # Panics
    ///
    /// When the end cannot be waited for.
    pub fn kill_9(&self) {
        let mut child = self.child();
        signal::send(&mut child, Signal::Kill);
        child.wait().expect("our own child can be waited for");
    }

    /// Ends the server in order, as `SIGTERM` does, and waits for that.
    ///
    /// # Panics
    ///
    /// When the end cannot be waited for.
    pub fn shut_down(&self) {
        let mut child = self.child();
        signal::send(&mut child, Signal::Terminate);
        child.wait().expect("our own child can be waited for");
    }

    /// Starts the server again on the same folder, so that it loads its append-only file.
    ///
    /// A server that still runs is killed first.
    ///
    /// # Panics
    ///
    /// When it does not start.
    pub fn restart(&self) {
        self.kill_9();
        *self.child() = launch(&self.folder, &self.env).unwrap_or_else(|why| panic!("{why}"));
    }

    /// Freezes the server: connections stay open and nothing answers.
    pub fn pause(&self) {
        signal::send(&mut self.child(), Signal::Stop);
    }

    /// Lets a frozen server go on.
    pub fn resume(&self) {
        signal::send(&mut self.child(), Signal::Continue);
    }

    /// Runs `redis-cli` with `args` against the server and returns what it printed, trimmed.
    ///
    /// # Panics
    ///
    /// When `redis-cli` is not installed, cannot connect, or the server answers with an error.
    #[track_caller]
    pub fn cli(&self, args: &[&str]) -> String {
        let mut command = Command::new("redis-cli");
        command.arg("-e").arg("-s").arg(self.socket()).args(args).stdin(Stdio::null());
        let output = command.output().unwrap_or_else(|error| cannot_run("redis-cli", &error));
        let said = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let talk = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "redis-cli {args:?}: {said}{}", talk.trim());
        said
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        let mut child = self.child();
        signal::send(&mut child, Signal::Kill);
        let _reaped = child.wait();
    }
}

/// Starts a server as `config` says, on another port when the first is taken.
fn start(config: &RedisConfig) -> RedisServer {
    let mut last = String::new();
    for _ in 0..PORTS_TO_TRY {
        let folder = temp_folder();
        let port = config.has_port().then(free_port);
        std::fs::write(folder.path().join("redis.conf"), config.text(folder.path(), port))
            .expect("a new file in our folder");
        match launch(&folder, config.env_vars()) {
            Ok(child) => {
                let env = config.env_vars().to_vec();
                return RedisServer { folder, port, env, child: Mutex::new(child) };
            }
            Err(why) if port.is_some() => last = why,
            Err(why) => panic!("{why}"),
        }
    }
    panic!("{last}");
}

/// Starts the server configured in `folder` and waits until it answers.
fn launch(folder: &TempDir, env: &[(OsString, OsString)]) -> Result<Child, String> {
    let socket = folder.path().join("redis.sock");
    // A killed server leaves its socket; without it nobody can take the old one for the new.
    let _never_was = std::fs::remove_file(&socket);
    // What is wrong with the configuration comes on stderr, before there is a log.
    let errors = File::create(folder.path().join("redis.err")).expect("a new file in our folder");
    let mut child = Command::new("redis-server")
        .arg(folder.path().join("redis.conf"))
        .envs(env.iter().map(|(name, value)| (name, value)))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(errors)
        .spawn()
        .unwrap_or_else(|error| cannot_run("redis-server", &error));
    let end = Deadline::after(READY_WITHIN);
    loop {
        if is_ready(&socket) {
            return Ok(child);
        }
        let status = child.try_wait().expect("the state of our own child");
        if status.is_some() || end.has_passed() {
            signal::send(&mut child, Signal::Kill);
            let _reaped = child.wait();
            let why = status.map_or("no answer".to_owned(), |status| status.to_string());
            let said = ["redis.err", "redis.log"]
                .map(|name| std::fs::read_to_string(folder.path().join(name)).unwrap_or_default());
            return Err(format!("redis-server did not start: {why}\n{}", said.concat()));
        }
        pause();
    }
}

/// Whether a server on `socket` has loaded its data and answers.
fn is_ready(socket: &PathBuf) -> bool {
    let ping = || -> std::io::Result<bool> {
        let mut stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(Duration::from_secs(1)))?;
        stream.write_all(b"PING\r\n")?;
        let mut answer = [0; 5];
        stream.read_exact(&mut answer)?;
        Ok(&answer == b"+PONG")
    };
    ping().unwrap_or(false)
}

/// A port that was free a moment ago.
fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port on the loopback");
    listener.local_addr().expect("the address of a bound socket").port()
}

#[track_caller]
fn cannot_run(program: &str, error: &std::io::Error) -> ! {
    panic!(
        "cannot run {program}: {error}\n\
         These tests need a real Redis, 7.0 or newer. Install it with\n\
         `apt-get install redis-server` (Debian, Ubuntu) or `brew install redis` (macOS),\n\
         or let `cargo xtask test` do it."
    )
}

#[cfg(test)]
mod tests;
