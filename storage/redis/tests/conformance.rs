//! The conformance suite on a real server, one for each property.

use std::sync::Arc;

use async_trait::async_trait;
use holdpoint_graph::Namespace;
use holdpoint_storage::{Store, conformance::Bench};
use holdpoint_storage_redis::{RedisConfig, RedisStore};
use holdpoint_testkit::{Appendfsync, RedisServer};

struct RedisBench(RedisServer);

impl RedisBench {
    fn start() -> Self {
        Self(RedisServer::config().appendfsync(Appendfsync::Everysec).start())
    }
}

#[async_trait]
impl Bench for RedisBench {
    async fn fresh(&self, namespace: &Namespace) -> Arc<dyn Store> {
        let config = RedisConfig::new(self.0.url(), namespace.clone());
        Arc::new(RedisStore::connect(config).await.expect("a good server takes a namespace"))
    }
}

holdpoint_storage::conformance_tests!(RedisBench::start());
