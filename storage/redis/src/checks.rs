//! Whether a server may hold runs: its version, role and settings, read when a connection opens
//! and every half minute.

use std::collections::HashMap;

use holdpoint_graph::{Code, Refusal, printable};
use holdpoint_storage::{Durability, Finding, Level, StoreError};
use redis::Value;

use crate::{
    RedisConfig,
    error::{Fault, not_connected},
    guard::{MEMORY_WARN, Memory},
    socket::Link,
};

/// What is known of a server that passed.
#[derive(Debug, Clone)]
pub(crate) struct Facts {
    /// The level that its acknowledgements reach.
    pub(crate) durability: Durability,
    /// The id of the server's process.
    pub(crate) server: String,
    /// What the checks found, good and bad.
    pub(crate) findings: Vec<Finding>,
}

/// The texts that the server gives about itself.
struct About {
    info: HashMap<String, String>,
    settings: HashMap<String, String>,
}

impl About {
    fn info(&self, name: &str) -> &str {
        self.info.get(name).map_or("", String::as_str)
    }

    /// A setting, or what INFO says of it when CONFIG is forbidden.
    fn setting(&self, name: &str) -> Option<&str> {
        let by_info = || match name {
            "maxmemory-policy" => self.info.get("maxmemory_policy").map(String::as_str),
            "maxmemory" => self.info.get("maxmemory").map(String::as_str),
            "appendonly" => match self.info("aof_enabled") {
                "1" => Some("yes"),
                "0" => Some("no"),
                _ => None,
            },
            _ => None,
        };
        self.settings.get(name).map(String::as_str).or_else(by_info)
    }
}

/// Reads and judges a server.
pub(crate) async fn read(link: &Link, config: &RedisConfig) -> Result<Facts, StoreError> {
    let info = link.send(&redis::cmd("INFO")).await.map_err(|error| not_connected(&error))?;
    let about = About { info: pairs(&info), settings: settings(link).await? };
    supported(&about)?;
    let unsafe_settings = unsafe_settings(&about);
    if let (Some(refusal), false) = (unsafe_settings.first(), config.accept_data_loss) {
        return Err(refusal.clone().into());
    }
    let durability = match (about.setting("appendonly"), about.setting("appendfsync")) {
        (Some("yes"), Some("always")) => Durability::Fsynced,
        _ => Durability::Buffered,
    };
    let mut findings: Vec<Finding> = unsafe_settings
        .iter()
        .map(|no| Finding::new(Level::Bad, "settings", no, "see the message"))
        .collect();
    findings.extend(warnings(&about));
    Ok(Facts { durability, server: about.info("run_id").to_owned(), findings })
}

/// Refuses a namespace that lost its sentinel, or is not the one that was asked for.
pub(crate) fn instance(sentinel: &str, config: &RedisConfig) -> Result<(), StoreError> {
    let found = instance_of(sentinel);
    let expected = config.instance.as_deref().filter(|_| !config.join);
    match expected {
        Some(expected) if expected != found => {
            let shown = printable(expected, 40);
            let why = format!(
                "has instance {found:?} in namespace {}, {shown:?} was expected: another \
                 deployment uses it; take another namespace, or --join it",
                config.namespace
            );
            Err(Refusal::new(Code::StoreUnsafe, "store", why).into())
        }
        Some(_) | None => Ok(()),
    }
}

/// The id of the instance in a sentinel.
pub(crate) fn instance_of(sentinel: &str) -> &str {
    sentinel.split(' ').nth(1).unwrap_or_default()
}

/// Refuses a layout that another version of this program made.
pub(crate) fn layout(sentinel: &str, ours: &str) -> Result<(), StoreError> {
    if sentinel.is_empty() {
        let why = "has runs, and their sentinel is gone: keys were evicted or deleted; restore \
                   a backup, or --join what is left and run doctor --repair";
        return Err(Refusal::new(Code::StoreUnsafe, "store", why).into());
    }
    let theirs = sentinel.split(' ').next().unwrap_or_default();
    match (theirs.parse::<u32>(), ours.parse::<u32>()) {
        (Ok(theirs), Ok(ours)) if theirs == ours => Ok(()),
        (Ok(theirs), Ok(ours)) => {
            let why =
                format!("has layout {theirs}, this program reads {ours}; use another program");
            Err(Refusal::new(Code::SchemaNewer, "store", why).into())
        }
        (Ok(_) | Err(_), Ok(_) | Err(_)) => Err(StoreError::Corrupt {
            what: "the sentinel of the namespace".to_owned(),
            why: format!("{:?} is none", printable(sentinel, 40)),
        }),
    }
}

/// The texts of an answer to INFO by their names.
pub(crate) fn pairs(reply: &Value) -> HashMap<String, String> {
    let text = if let Value::BulkString(text) = reply {
        String::from_utf8_lossy(text)
    } else {
        return HashMap::new();
    };
    let pairs = text.lines().filter_map(|line| line.trim().split_once(':'));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

/// The settings that matter; none when the server's user may not read them.
async fn settings(link: &Link) -> Result<HashMap<String, String>, StoreError> {
    let mut command = redis::cmd("CONFIG");
    command.arg("GET");
    for name in ["maxmemory*", "append*", "no-appendfsync-on-rewrite", "min-replicas-to-write"] {
        command.arg(name);
    }
    match link.send(&command).await {
        Ok(reply) => Ok(redis::from_redis_value(reply).unwrap_or_default()),
        Err(error) => match Fault::of(&error) {
            Fault::Refused { is_stale: false, .. } => Ok(HashMap::new()),
            Fault::Refused { .. }
            | Fault::NoScript
            | Fault::Reset
            | Fault::Unknown(_)
            | Fault::Late(_)
            | Fault::Final(_) => Err(not_connected(&error)),
        },
    }
}

fn supported(about: &About) -> Result<(), Refusal> {
    let version = about.info("redis_version");
    let numbers: Vec<u32> = version.split('.').filter_map(|part| part.parse().ok()).collect();
    let is_old = match numbers.as_slice() {
        [major, ..] => *major < 7,
        [] => true,
    };
    if is_old {
        let why = format!("is Redis {version:?}; Holdpoint needs 7.0 or newer (flags of scripts)");
        return Err(Refusal::new(Code::StoreUnsupported, "store", why));
    }
    if about.info("redis_mode") == "cluster" {
        let why = "is a node of a cluster; Holdpoint needs one server with all keys";
        return Err(Refusal::new(Code::StoreUnsupported, "store", why));
    }
    Ok(())
}

/// The settings that lose what was acknowledged, each with its way out.
fn unsafe_settings(about: &About) -> Vec<Refusal> {
    let mut found = Vec::new();
    let mut refuse = |why: String| found.push(Refusal::new(Code::StoreUnsafe, "store", why));
    let role = about.info("role");
    if role != "master" {
        refuse(format!("has the role {role:?}; connect to the primary"));
    }
    for (name, allowed, fix) in [
        ("maxmemory-policy", &["noeviction"][..], "any other policy deletes runs"),
        ("appendonly", &["yes"], "without it a restart forgets all runs"),
        ("appendfsync", &["always", "everysec"], "else a power cut forgets acknowledged runs"),
        ("no-appendfsync-on-rewrite", &["no"], "else a rewrite suspends every sync"),
    ] {
        let Some(value) = about.setting(name) else { continue };
        if !allowed.contains(&value) {
            let wanted = allowed.first().copied().unwrap_or_default();
            let way = format!("run `CONFIG SET {name} {wanted}` and set it in redis.conf");
            refuse(format!("has {name} {value}; {way} ({fix})"));
        }
    }
    found
}

fn warnings(about: &About) -> Vec<Finding> {
    let mut found = Vec::new();
    let mut add = |level, text: String, fix: &str| {
        found.push(Finding::new(level, "settings", text, fix));
    };
    match about.setting("appendfsync") {
        Some("always") => add(Level::Ok, "every write is synced to the disk".to_owned(), ""),
        Some("everysec") => add(
            Level::Warn,
            "appendfsync is everysec: a power cut or a slow disk loses seconds".to_owned(),
            "CONFIG SET appendfsync always",
        ),
        Some(_) => {}
        None => add(
            Level::Warn,
            "the settings cannot be read; the level is not verified".to_owned(),
            "let the user run CONFIG GET",
        ),
    }
    if about.setting("maxmemory") == Some("0") {
        let fix = "set maxmemory below the memory of the machine";
        add(Level::Warn, "maxmemory is not set: the system may kill the server".to_owned(), fix);
    }
    for name in ["aof_last_write_status", "aof_last_bgrewrite_status"] {
        let status = about.info(name);
        if !status.is_empty() && status != "ok" {
            add(Level::Bad, format!("{name} is {status}"), "look at the disk and the server's log");
        }
    }
    let memory = Memory::of(|name| about.info(name).parse().unwrap_or(0));
    if memory.percent() >= MEMORY_WARN {
        let text = format!("{} % of maxmemory are used", memory.percent());
        let fix = "raise maxmemory or let runs be pruned sooner; at 80 % no new run is taken";
        add(Level::Warn, text, fix);
    }
    let delayed = about.info("aof_delayed_fsync");
    if !matches!(delayed, "" | "0") {
        let text = format!("{delayed} syncs were delayed: the disk is slower than the writes");
        add(Level::Warn, text, "give the append-only file a faster disk");
    }
    found
}
