//! Opening the store by its URL, as the parts of the torture name it to each other.

use std::{path::Path, sync::Arc};

use anyhow::{Context as _, Result};
use holdpoint_graph::Namespace;
use holdpoint_storage::Store;
use holdpoint_storage_redis::{RedisConfig, RedisStore};
use holdpoint_storage_sqlite::{Location, SqliteConfig, SqliteStore};

/// The namespace of the torture.
pub(crate) const NAMESPACE: &str = "torture";

/// Opens the store of a URL; everysec is a loss that the torture accepts and measures.
pub(crate) async fn open(url: &str) -> Result<Arc<dyn Store>> {
    let namespace = Namespace::new(NAMESPACE)?;
    Ok(match url.strip_prefix("sqlite:") {
        Some(path) => {
            let location = Location::File(Path::new(path).to_owned());
            let config = SqliteConfig::new(location, namespace);
            Arc::new(SqliteStore::open(config).await.with_context(|| format!("no store {url}"))?)
        }
        None => {
            let mut config = RedisConfig::new(url, namespace);
            config.accept_data_loss = true;
            Arc::new(RedisStore::connect(config).await.with_context(|| format!("no store {url}"))?)
        }
    })
}
