//! Opening connections: the only place that knows addresses and sockets.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU32, Ordering},
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
    time::timeout,
};

use crate::{RedisConfig, error::not_connected};

/// Commands that wait for the connection's task; beyond it callers wait for each other.
const BUFFERED_COMMANDS: usize = 512;

/// An address with its credentials.
#[derive(Debug)]
pub(crate) struct Socket {
    client: Client,
    connect_timeout: Duration,
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
        Ok(Self { client, connect_timeout: config.connect_timeout })
    }

    /// Opens a connection for commands; without a time limit on replies for blocking ones.
    pub(crate) async fn link(&self, response: Option<Duration>) -> Result<Link, StoreError> {
        let config = AsyncConnectionConfig::new()
            .set_response_timeout(response)
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
        let shared =
            LinkShared { is_closed, timeouts: AtomicU32::new(0), driver: driver.abort_handle() };
        Ok(Link { connection, shared: Arc::new(shared) })
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
