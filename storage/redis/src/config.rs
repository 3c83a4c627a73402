//! Where the server is, and how patient this program is with it.

use std::time::Duration;

use holdpoint_graph::Namespace;

/// How to reach a Redis and what of it to use.
#[derive(Clone)]
pub struct RedisConfig {
    /// `redis://[user:password@]host[:port][/db]` or `redis+unix:///path/of/socket`.
    pub url: String,
    /// The namespace: all keys and channels begin with it.
    pub namespace: Namespace,
    /// Use a server whose settings may lose what it acknowledged. Default: false.
    pub accept_data_loss: bool,
    /// How long a connection may take to open. Default: 2 s.
    pub connect_timeout: Duration,
    /// How long a reply may take. Default: 5 s.
    pub response_timeout: Duration,
    /// How long a call is repeated after its outcome became unknown, before it says so.
    /// Default: 2 s.
    pub patience: Duration,
    /// Connections that commands are spread over; 0 chooses one, or four when the server syncs
    /// each write, since it reads only 16 KiB of each connection between two syncs. Default: 0.
    pub connections: usize,
    /// What the connections call themselves (`CLIENT LIST` shows it), before a colon and what
    /// they are for. Default: `holdpoint`.
    pub client: String,
    /// How often the settings of the server are read again. Default: 30 s.
    pub check_every: Duration,
    /// The id that the namespace must have, as the doctor shows it: two deployments that use one
    /// namespace by mistake notice it. Default: any.
    pub instance: Option<String>,
    /// Use the namespace all the same, and also when its sentinel is gone. Default: false.
    pub join: bool,
}

impl RedisConfig {
    /// The defaults for a server and a namespace.
    pub fn new(url: impl Into<String>, namespace: Namespace) -> Self {
        Self {
            url: url.into(),
            namespace,
            accept_data_loss: false,
            connect_timeout: Duration::from_secs(2),
            response_timeout: Duration::from_secs(5),
            patience: Duration::from_secs(2),
            connections: 0,
            client: "holdpoint".to_owned(),
            check_every: Duration::from_secs(30),
            instance: None,
            join: false,
        }
    }

    /// The URL without what is secret in it.
    #[must_use]
    pub fn place(&self) -> String {
        let Some((scheme, rest)) = self.url.split_once("://") else { return String::new() };
        let (before, path) = rest.split_once('/').unwrap_or((rest, ""));
        let host = before.rsplit_once('@').map_or(before, |(_, host)| host);
        let path = path.split('?').next().unwrap_or_default();
        let slash = if path.is_empty() { "" } else { "/" };
        format!("{scheme}://{host}{slash}{path}")
    }
}

impl std::fmt::Debug for RedisConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisConfig")
            .field("url", &self.place())
            .field("namespace", &self.namespace)
            .field("accept_data_loss", &self.accept_data_loss)
            .field("connect_timeout", &self.connect_timeout)
            .field("response_timeout", &self.response_timeout)
            .field("patience", &self.patience)
            .field("connections", &self.connections)
            .field("client", &self.client)
            .field("check_every", &self.check_every)
            .field("instance", &self.instance)
            .field("join", &self.join)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, expect: &str) {
        let config = RedisConfig::new(url, Namespace::new("n").unwrap());
        assert_eq!(config.place(), expect);
        assert!(!format!("{config:?}").contains("secret"));
    }

    #[test]
    fn a_place_has_no_secrets() {
        check("redis://127.0.0.1:6379", "redis://127.0.0.1:6379");
        check("redis://me:secret@host:1/2", "redis://host:1/2");
        check("redis+unix:///run/redis.sock?pass=secret", "redis+unix:///run/redis.sock");
        check("rubbish", "");
    }
}
