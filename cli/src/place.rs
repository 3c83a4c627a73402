//! Which store: the only place of the project that picks a backend.

use std::{path::PathBuf, sync::Arc};

use holdpoint_graph::Code;
use holdpoint_storage::{Store, StoreError, StoreResult};
use holdpoint_storage_redis::{RedisConfig, RedisStore};
use holdpoint_storage_sqlite::{Location, SqliteConfig, SqliteStore, Synchronous};

use crate::{
    failure::{Failure, Stop},
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
            Ok(Arc::new(SqliteStore::open(config).await?))
        }
        Place::Redis => {
            let config = RedisConfig {
                accept_data_loss: settings.accept_data_loss,
                instance: settings.instance.clone(),
                join: settings.join,
                ..RedisConfig::new(settings.store.clone(), settings.namespace.clone())
            };
            Ok(Arc::new(RedisStore::connect(config).await?))
        }
    }
}

/// Opens the store once more, for a part of the program that must not share connections.
pub(crate) async fn open_for_upkeep(settings: &Settings) -> StoreResult<Arc<dyn Store>> {
    open(settings, Access::Existing).await.map_err(|stop| match stop {
        Stop::Failed(failure) => StoreError::Unavailable { cause: failure.message },
        Stop::Exit(_) | Stop::ClosedPipe => StoreError::Unavailable { cause: stop.to_string() },
    })
}

fn read(url: &str) -> Result<Place, Stop> {
    let shown = without_secrets(url);
    let bad = |why: &str| Stop::from(Failure::usage("store", format!("store {shown:?} {why}")));
    let (scheme, rest) = url
        .split_once(':')
        .ok_or_else(|| bad("is no URL; sqlite:PATH, redis://HOST and redis+unix:///SOCKET are"))?;
    let unsupported = |why: &str| {
        Stop::from(Failure::of(Code::StoreUnsupported, format!("store {shown:?}: {why}")))
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
    holdpoint_graph::printable(&shown, 200)
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
