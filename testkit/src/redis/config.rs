//! The configuration of a test's Redis.

use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::path::Path;

use crate::RedisServer;

/// When Redis syncs its append-only file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Appendfsync {
    /// Before each answer: a write that was acknowledged is on the disk.
    #[default]
    Always,
    /// About once a second.
    Everysec,
    /// Whenever the system likes.
    No,
}

/// The settings of a [`RedisServer`]; by default those that Holdpoint calls durable.
#[derive(Debug, Clone, Default)]
#[must_use = "nothing runs before `start`"]
pub struct RedisConfig {
    appendfsync: Appendfsync,
    has_port: bool,
    lines: Vec<String>,
    env: Vec<(OsString, OsString)>,
}

impl RedisConfig {
    /// Chooses when the append-only file is synced; default [`Appendfsync::Always`].
    pub fn appendfsync(mut self, appendfsync: Appendfsync) -> Self {
        self.appendfsync = appendfsync;
        self
    }

    /// Listens on a free port of the loopback address too.
    pub fn tcp(mut self) -> Self {
        self.has_port = true;
        self
    }

    /// Adds a line in the syntax of `redis.conf`; it overrules the line it repeats.
    pub fn line(mut self, line: impl Into<String>) -> Self {
        self.lines.push(line.into());
        self
    }

    /// Sets an environment variable of the server, at each of its starts.
    pub fn env(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// Starts the server and waits until it answers.
    ///
    /// # Panics
    ///
    /// When `redis-server` is not installed or does not start.
    #[must_use]
    pub fn start(&self) -> RedisServer {
        super::start(self)
    }

    pub(super) fn env_vars(&self) -> &[(OsString, OsString)] {
        &self.env
    }

    pub(super) fn has_port(&self) -> bool {
        self.has_port
    }

    /// The text of `redis.conf` for a server that lives in `folder`.
    pub(super) fn text(&self, folder: &Path, port: Option<u16>) -> String {
        let folder = folder.display();
        let port = port.unwrap_or(0);
        let appendfsync = match self.appendfsync {
            Appendfsync::Always => "always",
            Appendfsync::Everysec => "everysec",
            Appendfsync::No => "no",
        };
        let mut text = format!(
            "port {port}\n\
             bind 127.0.0.1\n\
             unixsocket \"{folder}/redis.sock\"\n\
             dir \"{folder}\"\n\
             logfile \"{folder}/redis.log\"\n\
             loglevel warning\n\
             daemonize no\n\
             save \"\"\n\
             appendonly yes\n\
             appendfsync {appendfsync}\n\
             no-appendfsync-on-rewrite no\n\
             maxmemory-policy noeviction\n"
        );
        for line in &self.lines {
            writeln!(text, "{line}").expect("writing to a string cannot fail");
        }
        text
    }
}
