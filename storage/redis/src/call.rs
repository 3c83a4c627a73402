//! A call of a script, before it is sent.

use std::sync::Arc;

use holdpoint_graph::RequestId;
use holdpoint_storage::Random;
use redis::{RedisError, Value};

use crate::{script::Script, socket::Link};

/// A call under construction: a script and its arguments.
pub(crate) struct Call {
    pub(crate) script: Script,
    /// What its namespace was known by when it was made.
    pub(crate) sentinel: Arc<str>,
    command: redis::Cmd,
    ends_with_server: bool,
}

impl Call {
    /// A call whose command has the script and the keys.
    pub(crate) fn new(script: Script, command: redis::Cmd, sentinel: Arc<str>) -> Self {
        Self { script, sentinel, command, ends_with_server: false }
    }

    /// The last argument is the id of the server that gets the call, whichever that is.
    pub(crate) fn ends_with_server(&mut self) {
        self.ends_with_server = true;
    }

    /// Adds an argument.
    pub(crate) fn arg(&mut self, value: impl AsRef<[u8]>) -> &mut Self {
        self.command.arg(value.as_ref());
        self
    }

    /// Adds the arguments that another command holds.
    pub(crate) fn args(&mut self, others: &redis::Cmd) -> &mut Self {
        for other in others.args_iter() {
            if let redis::Arg::Simple(value) = other {
                self.command.arg(value);
            }
        }
        self
    }

    /// Adds a number.
    pub(crate) fn number(&mut self, value: impl redis::ToRedisArgs) -> &mut Self {
        self.command.arg(value);
        self
    }

    /// Sends it once.
    pub(crate) async fn send_over(&self, link: &Link) -> Result<Value, RedisError> {
        if self.ends_with_server {
            return link.send(self.command.clone().arg(link.server())).await;
        }
        link.send(&self.command).await
    }
}

/// The id of a call that has none of its own.
pub(crate) fn natural() -> RequestId {
    Random.request_id()
}
