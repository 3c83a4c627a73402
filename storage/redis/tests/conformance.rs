//! The conformance suite on a real server, one for each property.

use std::sync::Arc;

use async_trait::async_trait;
use holdpoint_graph::{Namespace, RunId};
use holdpoint_storage::{
    Store,
    conformance::{Bench, Part},
};
use holdpoint_storage_redis::{RedisConfig, RedisStore};
use holdpoint_testkit::{Appendfsync, RedisServer};

struct RedisBench(RedisServer);

impl RedisBench {
    fn start() -> Self {
        Self(RedisServer::config().appendfsync(Appendfsync::Everysec).start())
    }

    fn raw(&self) -> redis::Connection {
        let path = format!("unix://{}", self.0.socket().display());
        let client = redis::Client::open(path).expect("a socket is a place");
        client.get_connection().expect("our server takes connections")
    }

    /// The key of a run's part, as the server has it.
    fn key(&self, namespace: &Namespace, run: &RunId, kind: &str) -> String {
        let meta = self.0.cli(&["--scan", "--pattern", &format!("hp:{namespace}:*:meta")]);
        let prefix = meta.strip_suffix("meta").expect("a namespace has a sentinel");
        format!("{prefix}{kind}:{run}")
    }
}

#[async_trait]
impl Bench for RedisBench {
    async fn fresh(&self, namespace: &Namespace) -> Arc<dyn Store> {
        let config = RedisConfig::new(self.0.url(), namespace.clone());
        Arc::new(RedisStore::connect(config).await.expect("a good server takes a namespace"))
    }

    async fn stored(&self, namespace: &Namespace, run: &RunId, part: Part) -> Vec<u8> {
        let mut conn = self.raw();
        let (kind, number) = place(part);
        let key = self.key(namespace, run, kind);
        let read = match number {
            Some(n) => redis::cmd("LINDEX").arg(key).arg(n).query(&mut conn),
            None => redis::cmd("GET").arg(key).query(&mut conn),
        };
        read.expect("the part is there")
    }

    async fn overwrite(
        &self,
        namespace: &Namespace,
        run: &RunId,
        part: Part,
        bytes: Option<&[u8]>,
    ) {
        let mut conn = self.raw();
        let (kind, number) = place(part);
        let key = self.key(namespace, run, kind);
        let write = match (number, bytes) {
            (None, Some(bytes)) => redis::cmd("SET").arg(key).arg(bytes).exec(&mut conn),
            (None, None) => redis::cmd("DEL").arg(key).exec(&mut conn),
            (Some(n), Some(bytes)) => redis::cmd("LSET").arg(key).arg(n).arg(bytes).exec(&mut conn),
            (Some(_), None) => redis::cmd("RPOP").arg(key).exec(&mut conn),
        };
        write.expect("the part is there");
    }

    fn head_breaks(&self) -> &'static [&'static str] {
        &["v rubbish", "e 1e3", "e 9007199254740993", "y rubbish", "a a/b|default|", "type"]
    }

    fn forgets_the_session(&self, way: &str) -> bool {
        way == "type" || way.starts_with("a ")
    }

    async fn break_head(&self, namespace: &Namespace, run: &RunId, way: &str) {
        let key = self.key(namespace, run, "r");
        match way.split_once(' ') {
            Some((field, text)) => self.0.cli(&["HSET", &key, field, text]),
            None => self.0.cli(&["SET", &key, "rubbish"]),
        };
    }
}

fn place(part: Part) -> (&'static str, Option<u64>) {
    match part {
        Part::Payload => ("p", None),
        Part::Event(n) => ("j", Some(n)),
        Part::Snapshot => ("z", None),
    }
}

holdpoint_storage::conformance_tests!(RedisBench::start());
