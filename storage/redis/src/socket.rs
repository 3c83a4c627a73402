//! Opening connections: the only place that knows addresses and sockets.

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
};
use std::time::Duration;

use holdpoint_graph::{Code, Refusal};
use holdpoint_storage::StoreError;
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, RedisConnectionInfo, RedisError, Value,
    aio::{MultiplexedConnection, PubSub},
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpStream, UnixStream},
    task::AbortHandle,
    time::{Instant, timeout},
};

use crate::{RedisConfig, error::not_connected};

/// Commands that wait for the connection's task; beyond it callers wait for each other.
const BUFFERED_COMMANDS: usize = 512;

/// An address with its credentials.
#[derive(Debug)]
pub(crate) struct Socket {
    client: Client,
    name: String,
    connect_timeout: Duration,
}

/// What a connection is for; part of its name.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose {
    /// Commands, whose reply may take so long.
    Commands(Duration),
    /// Blocking waits, without a limit on replies.
    Wake,
}

impl Purpose {
    fn response(self) -> Option<Duration> {
        match self {
            Self::Commands(response) => Some(response),
            Self::Wake => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Commands(_) => "commands",
            Self::Wake => "wake",
        }
    }
}

/// One connection. Clones share it; it closes with the last of them.
#[derive(Clone)]
pub(crate) struct Link {
    connection: MultiplexedConnection,
    shared: Arc<LinkShared>,
}

#[derive(Debug)]
struct LinkShared {
    is_closed: Arc<AtomicBool>,
    timeouts: AtomicU32,
    born: Instant,
    /// When the last reply came, in ms since then.
    heard_ms: AtomicU64,
    /// The id of the server's process.
    server: OnceLock<String>,
    driver: AbortHandle,
}

impl Drop for LinkShared {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Socket {
    pub(crate) fn new(config: &RedisConfig) -> Result<Self, StoreError> {
        let client = Client::open(config.url.as_str()).map_err(|error| {
            Refusal::new(Code::Usage, "store", format!("{:?}: {error}", config.place()))
        })?;
        let (name, connect_timeout) = (config.client.clone(), config.connect_timeout);
        Ok(Self { client, name, connect_timeout })
    }

    /// Opens a connection.
    pub(crate) async fn link(&self, purpose: Purpose) -> Result<Link, StoreError> {
        let config = AsyncConnectionConfig::new()
            .set_response_timeout(purpose.response())
            .set_pipeline_buffer_size(BUFFERED_COMMANDS);
        let greeted = timeout(self.connect_timeout, async {
            let (settings, stream) = self.open().await?;
            let greeted = MultiplexedConnection::new_with_config(settings, stream, config).await;
            greeted.map_err(|error| not_connected(&error))
        });
        let (connection, driver) = greeted.await.unwrap_or_else(|_| Err(silent()))?;
        let is_closed = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&is_closed);
        let driver = tokio::spawn(async move {
            driver.await;
            flag.store(true, Ordering::Release);
        });
        let shared = LinkShared {
            is_closed,
            timeouts: AtomicU32::new(0),
            born: Instant::now(),
            heard_ms: AtomicU64::new(0),
            server: OnceLock::new(),
            driver: driver.abort_handle(),
        };
        let link = Link { connection, shared: Arc::new(shared) };
        self.introduce(&link, purpose).await?;
        Ok(link)
    }

    /// Tells the server what the connection is for. A user that may not say so stays nameless.
    async fn introduce(&self, link: &Link, purpose: Purpose) -> Result<(), StoreError> {
        let mut command = redis::cmd("CLIENT");
        command.arg("SETNAME").arg(format!("{}:{}", self.name, purpose.name()));
        match timeout(self.connect_timeout, link.send(&command)).await {
            Ok(Err(error)) if error.code().is_none() => Err(not_connected(&error)),
            Ok(Ok(_) | Err(_)) => Ok(()),
            Err(_) => Err(silent()),
        }
    }

    /// Opens a connection for subscriptions.
    pub(crate) async fn pubsub(&self) -> Result<PubSub, StoreError> {
        let greeted = timeout(self.connect_timeout, async {
            let (settings, stream) = self.open().await?;
            PubSub::new(settings, stream).await.map_err(|error| not_connected(&error))
        });
        greeted.await.unwrap_or_else(|_| Err(silent()))
    }

    async fn open(&self) -> Result<(&RedisConnectionInfo, Box<dyn Stream>), StoreError> {
        let info = self.client.get_connection_info();
        Ok((info.redis_settings(), connect(info.addr()).await?))
    }
}

fn silent() -> StoreError {
    StoreError::Unavailable { cause: "the server does not answer".to_owned() }
}

impl Link {
    /// Sends one command.
    pub(crate) async fn send(&self, command: &redis::Cmd) -> Result<Value, RedisError> {
        let mut connection = self.connection.clone();
        let reply = connection.send_packed_command(command).await?;
        self.shared.timeouts.store(0, Ordering::Relaxed);
        let heard_ms = u64::try_from(self.shared.born.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.shared.heard_ms.fetch_max(heard_ms, Ordering::Relaxed);
        if let Value::ServerError(error) = reply {
            return Err(error.into());
        }
        Ok(reply)
    }

    /// Sends several commands in one write.
    pub(crate) async fn send_all(
        &self,
        pipeline: &redis::Pipeline,
    ) -> Result<Vec<Value>, RedisError> {
        pipeline.query_async(&mut self.connection.clone()).await
    }

    /// Whether the server or the network closed it: nothing can be sent.
    pub(crate) fn is_closed(&self) -> bool {
        self.shared.is_closed.load(Ordering::Acquire)
    }

    /// Whether any reply came since then.
    pub(crate) fn has_heard_since(&self, time: Instant) -> bool {
        let heard = Duration::from_millis(self.shared.heard_ms.load(Ordering::Relaxed));
        self.shared.born + heard >= time
    }

    /// The id of the server's process; empty when it was not asked.
    pub(crate) fn server(&self) -> &str {
        self.shared.server.get().map_or("", String::as_str)
    }

    /// Notes the id of the server's process, which a connection cannot outlive.
    pub(crate) fn is_of(&self, server: &str) {
        let _first = self.shared.server.set(server.to_owned());
    }

    /// Counts a reply that did not come in time; true at the second in a row.
    pub(crate) fn is_late_again(&self) -> bool {
        self.shared.timeouts.fetch_add(1, Ordering::Relaxed) > 0
    }

    /// Whether both are the same connection.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.shared, &other.shared)
    }
}

/// What a connection runs on.
trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

#[expect(clippy::wildcard_enum_match_arm, reason = "the client library's enum grows")]
async fn connect(address: &ConnectionAddr) -> Result<Box<dyn Stream>, StoreError> {
    let opened: std::io::Result<Box<dyn Stream>> = match address {
        ConnectionAddr::Tcp(host, port) => tcp(host, *port).await,
        ConnectionAddr::Unix(path) => {
            UnixStream::connect(path).await.map(|stream| Box::new(stream) as Box<dyn Stream>)
        }
        _ => {
            let why = "this build speaks redis:// and redis+unix:// only";
            return Err(Refusal::new(Code::StoreUnsupported, "store", why).into());
        }
    };
    opened.map_err(|error| StoreError::Unavailable { cause: format!("connecting: {error}") })
}

async fn tcp(host: &str, port: u16) -> std::io::Result<Box<dyn Stream>> {
    let stream = TcpStream::connect((host, port)).await?;
    stream.set_nodelay(true)?;
    Ok(Box::new(stream))
}
