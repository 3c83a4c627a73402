//! Which store: the only place of the project that picks a backend.

use std::{path::PathBuf, sync::Arc, time::Duration};

use holdpoint_graph::{Code, printable};
use holdpoint_storage::{Store, StoreError};
use holdpoint_storage_redis::{RedisConfig, RedisStore};
use holdpoint_storage_sqlite::{Location, SqliteConfig, SqliteStore, Synchronous};
use holdpoint_worker::StoreFactory;

use crate::{
    failure::{Failure, Stop},
    secure,
    settings::Settings,
};

/// What a command wants of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// It looks, or acts on what is there: a missing SQLite file stays missing.
    Existing,
    /// It brings something: a missing SQLite file is made.
    Create,
}

/// A store's URL, read.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Sqlite { location: Location, synchronous: Synchronous },
    Redis,
}

/// Opens the store that the settings name.
///
/// # Errors
/// Usage for a URL that is none, `E_STORE_UNSUPPORTED` for one that this build cannot serve, and
/// whatever the store itself refuses.
pub(crate) async fn open(settings: &Settings, access: Access) -> Result<Arc<dyn Store>, Stop> {
    let refused = |error| at_store(error, &settings.store);
    match read(&settings.store)? {
        Place::Sqlite { location, synchronous } => {
            if let (Location::File(path), Access::Existing) = (&location, access)
                && !path.exists()
            {
                let text = format!("there is no store at {} yet", path.display());
                return Err(Failure::of(Code::StoreUnavailable, text)
                    .with_fix("enqueue, worker and dev make one; --store names another")
                    .into());
            }
            let config = SqliteConfig {
                synchronous,
                create_if_missing: access == Access::Create,
                ..SqliteConfig::new(location, settings.namespace.clone())
            };
            let store = SqliteStore::open(config).await.map_err(refused)?;
            Ok(Arc::new(store))
        }
        Place::Redis => {
            secure::insist(settings)?;
            let store = RedisStore::connect(redis(settings)).await.map_err(refused)?;
            Ok(Arc::new(store))
        }
    }
}

/// Whatever a store refuses while it is opened is about the option that names it.
fn at_store(error: StoreError, url: &str) -> Stop {
    if let StoreError::Unavailable { cause } = &error {
        let shown = without_secrets(url);
        let text = format!("store \"{shown}\" is not available: {}", printable(cause, 500));
        return Failure::of(error.code(), text).at("store").into();
    }
    match Stop::from(error) {
        Stop::Failed(failure) => failure.at("store").into(),
        stop @ (Stop::Exit(_) | Stop::ClosedPipe) => stop,
    }
}

fn redis(settings: &Settings) -> RedisConfig {
    RedisConfig {
        accept_data_loss: settings.accept_data_loss,
        instance: settings.instance.clone(),
        join: settings.join,
        ..RedisConfig::new(settings.store.clone(), settings.namespace.clone())
    }
}

/// A store of its own for the lease keeper, where the store has connections that a busy runtime
/// would delay. A renewal without an answer must be known as such while there is time for more.
pub(crate) fn upkeep_store(settings: &Settings, lease: Duration) -> Option<StoreFactory> {
    let Ok(Place::Redis) = read(&settings.store) else { return None };
    let patience = (lease / 5).clamp(Duration::from_millis(500), Duration::from_secs(5));
    let config = RedisConfig {
        client: "holdpoint-upkeep".to_owned(),
        response_timeout: patience,
        connect_timeout: patience.min(Duration::from_secs(2)),
        ..redis(settings)
    };
    Some(Arc::new(move || {
        let config = config.clone();
        Box::pin(async move {
            let store: Arc<dyn Store> = Arc::new(RedisStore::connect(config).await?);
            Ok(store)
        })
    }))
}

fn read(url: &str) -> Result<Place, Stop> {
    let shown = without_secrets(url);
    let bad = |why: &str| Stop::from(Failure::usage("store", format!("store \"{shown}\" {why}")));
    let (scheme, rest) = url
        .split_once(':')
        .ok_or_else(|| bad("is no URL; sqlite:PATH, redis://HOST and redis+unix:///SOCKET are"))?;
    let unsupported = |why: &str| {
        let text = format!("store \"{shown}\": {why}");
        Stop::from(Failure::of(Code::StoreUnsupported, text).at("store"))
    };
    match scheme {
        "sqlite" => sqlite(rest).ok_or_else(|| {
            bad("has no path, or something else than synchronous=full or =normal after the ?")
        }),
        "redis" if rest.len() > 2 && rest.starts_with("//") => Ok(Place::Redis),
        "redis+unix" if rest.starts_with("///") => Ok(Place::Redis),
        "redis" => Err(bad("has no host")),
        "redis+unix" => Err(bad("has no path; three slashes and the socket's path are needed")),
        "rediss" => Err(unsupported("this build has no TLS; use redis:// through a tunnel")),
        "redis+cluster" => Err(unsupported("clusters are not supported by this build")),
        "http" | "https" => Err(unsupported("remote servers are not supported by this build")),
        _ => Err(bad("has no known scheme; sqlite, redis and redis+unix are")),
    }
}

fn sqlite(rest: &str) -> Option<Place> {
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let synchronous = match query {
        "" | "synchronous=full" => Synchronous::Full,
        "synchronous=normal" => Synchronous::Normal,
        _ => return None,
    };
    let location = match path {
        "" | "//" => return None,
        ":memory:" => Location::Memory,
        path => Location::File(PathBuf::from(path.strip_prefix("//").unwrap_or(path))),
    };
    Some(Place::Sqlite { location, synchronous })
}

/// The URL without user, password and parameters, on one line.
pub(crate) fn without_secrets(url: &str) -> String {
    let shown = match url.split_once("://") {
        None => url.to_owned(),
        Some((scheme, rest)) => {
            let (before, path) = rest.split_once('/').unwrap_or((rest, ""));
            let host = before.rsplit_once('@').map_or(before, |(_, host)| host);
            let path = path.split('?').next().unwrap_or_default();
            let slash = if path.is_empty() { "" } else { "/" };
            format!("{scheme}://{host}{slash}{path}")
        }
    };
    printable(&shown, 200)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(url: &str, expect: &str) {
        let got = match read(url) {
            Ok(Place::Sqlite { location, synchronous }) => {
                format!("{location} {}", synchronous.as_str())
            }
            Ok(Place::Redis) => "redis".to_owned(),
            Err(Stop::Failed(failure)) => format!("{} {}", failure.code, failure.exit),
            Err(other) => panic!("{other:?}"),
        };
        assert_eq!(got, expect, "{url}");
    }

    #[test]
    fn urls_name_a_store_or_say_why_not() {
        check("sqlite:holdpoint.db", "holdpoint.db FULL");
        check("sqlite:/tmp/a b.db?synchronous=normal", "/tmp/a b.db NORMAL");
        check("sqlite:///tmp/a.db", "/tmp/a.db FULL");
        check("sqlite::memory:", "memory FULL");
        check("sqlite:", "E_USAGE 2");
        check("sqlite:a.db?synchronous=off", "E_USAGE 2");
        check("redis://127.0.0.1", "redis");
        check("redis+unix:///run/redis.sock", "redis");
        check("redis+unix://run/redis.sock", "E_USAGE 2");
        check("rediss://host", "E_STORE_UNSUPPORTED 6");
        check("redis+cluster://a:1,b:2", "E_STORE_UNSUPPORTED 6");
        check("https://server", "E_STORE_UNSUPPORTED 6");
        check("holdpoint.db", "E_USAGE 2");
        check("mysql://host", "E_USAGE 2");
    }

    #[test]
    fn a_refused_url_does_not_show_its_password() {
        let Err(Stop::Failed(failure)) = read("postgres://me:secret@host/db") else {
            panic!("it is refused");
        };
        assert!(!failure.message.contains("secret"), "{}", failure.message);
    }
}
