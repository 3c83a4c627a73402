//! Opening the file: what is refused before anything is written, and the settings of connections.

use std::{fs, io::Read, path::Path};

use holdpoint_graph::{Code, Refusal};
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::{
    config::{Location, SqliteConfig},
    db::{self, Db},
    fault::{self, Done, Fault},
    network, schema,
};

/// The oldest SQLite whose write-ahead log is safe with several connections.
pub(crate) const VERSION_MIN: i32 = 3_051_003;
/// The newest format of files: with a write-ahead log.
const FORMAT_MAX: u8 = 2;
/// How a write-ahead log begins; the last bit is the order of bytes of its checksums.
const LOG_MAGIC: u32 = 0x377f_0682;
/// The version of write-ahead logs.
const LOG_VERSION: u32 = 3_007_000;
/// Page cache of the writer, in KiB (SQLite counts those in negative numbers).
const WRITER_CACHE: i64 = -32 * 1_024;
/// Page cache of a reader.
const READER_CACHE: i64 = -4 * 1_024;
/// Statements that a connection keeps ready: all of this crate's.
const STATEMENTS_MAX: usize = 160;

/// Opens the writer's connection, creates or migrates the schema, and enters the namespace.
pub(crate) fn writer(config: &SqliteConfig) -> Done<Db> {
    check_version(rusqlite::version_number())?;
    let conn = match &config.location {
        Location::Memory => Connection::open_in_memory()?,
        Location::File(path) => open_file(config, path)?,
    };
    conn.busy_timeout(config.busy_timeout)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    let named = |error: rusqlite::Error| refuse(&config.location, error);
    settings(&conn, config).map_err(named)?;
    schema::prepare(&conn, &config.location)?;
    let ns = db::namespace_number(&conn, &config.namespace).map_err(named)?;
    Ok(db(config, conn, ns))
}

/// Opens a connection that can only read.
pub(crate) fn reader(config: &SqliteConfig, ns: i64) -> Done<Db> {
    let Location::File(path) = &config.location else {
        return Err(refusal(Code::Usage, &config.location, "has one connection only"));
    };
    // A reader of a write-ahead log writes to its shared memory; `query_only` keeps it from the
    // data.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let conn = Connection::open_with_flags(path, flags)?;
    conn.busy_timeout(config.busy_timeout)?;
    conn.set_prepared_statement_cache_capacity(STATEMENTS_MAX);
    conn.pragma_update(None, "query_only", true)?;
    conn.pragma_update(None, "cache_size", READER_CACHE)?;
    conn.pragma_update(None, "mmap_size", 0)?;
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(db(config, conn, ns))
}

fn db(config: &SqliteConfig, conn: Connection, ns: i64) -> Db {
    Db {
        conn,
        ns,
        namespace: config.namespace.clone(),
        durability: config.durability(),
        lane_cache: Default::default(),
    }
}

/// Refuses a library that may damage the file.
pub(crate) fn check_version(number: i32) -> Result<(), Refusal> {
    if number >= VERSION_MIN {
        return Ok(());
    }
    let shown = |n: i32| format!("{}.{}.{}", n / 1_000_000, n / 1_000 % 1_000, n % 1_000);
    let (found, least) = (shown(number), shown(VERSION_MIN));
    let why = format!("is {found}; at least {least} is needed, older ones can damage the file");
    Err(Refusal::new(Code::SqliteVersion, "the SQLite library", why))
}

fn open_file(config: &SqliteConfig, path: &Path) -> Done<Connection> {
    let at = &config.location;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        Some(_) | None => Path::new("."),
    };
    let folder = fs::canonicalize(folder).map_err(|error| {
        refusal(Code::SqliteDir, at, format!("is in a folder that cannot be opened: {error}"))
    })?;
    if path.is_dir() {
        return Err(refusal(Code::SqliteNotDb, at, "is a folder, not a database"));
    }
    if let Some(kind) = network::file_system(&folder) {
        let why = format!("is on a network file system ({kind}), where locks cannot be trusted");
        return Err(refusal(Code::SqliteNetworkFs, at, why));
    }
    if !config.create_if_missing && !path.exists() {
        return Err(refusal(Code::SqliteDir, at, "does not exist, and is not to be created"));
    }
    if let Some(what) = newer_format(path) {
        let why = format!("has {what}, which a newer SQLite wrote: use a newer program");
        return Err(refusal(Code::SqliteWalNewer, at, why));
    }
    let mut flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    flags.set(OpenFlags::SQLITE_OPEN_CREATE, config.create_if_missing);
    let conn = Connection::open_with_flags(path, flags).map_err(|error| refuse(at, error))?;
    conn.busy_timeout(config.busy_timeout)?;
    schema::check_owner(&conn, at)?;
    if conn.is_readonly("main")? {
        return Err(refusal(Code::SqliteReadonly, at, "cannot be written"));
    }
    Ok(conn)
}

/// What of the file, or of its write-ahead log, this library cannot read. SQLite itself calls such
/// a file no database, and takes such a log for an empty one.
fn newer_format(path: &Path) -> Option<String> {
    let start = |path: &Path| {
        let mut bytes = [0; 20];
        fs::File::open(path).and_then(|mut file| file.read_exact(&mut bytes)).ok().map(|()| bytes)
    };
    if let Some(bytes) = start(path)
        && bytes.starts_with(b"SQLite format 3\0")
        && bytes[19] > FORMAT_MAX
    {
        return Some(format!("the format {}", bytes[19]));
    }
    let mut log = path.as_os_str().to_owned();
    log.push("-wal");
    let bytes = start(Path::new(&log))?;
    let number = |at: usize| {
        let word = bytes.get(at..at + 4).and_then(|word| word.try_into().ok());
        u32::from_be_bytes(word.unwrap_or_default())
    };
    let is_log = number(0) & !1 == LOG_MAGIC;
    (is_log && number(4) > LOG_VERSION).then(|| format!("a log of version {}", number(4)))
}

fn settings(conn: &Connection, config: &SqliteConfig) -> rusqlite::Result<()> {
    if let Location::File(_) = config.location {
        conn.pragma_update(None, "journal_mode", "WAL")?;
    }
    conn.pragma_update(None, "synchronous", config.synchronous.as_str())?;
    #[cfg(feature = "planted")]
    if holdpoint_storage::Planted::EarlyAcknowledgement.is_at_work() {
        conn.pragma_update(None, "synchronous", "NORMAL")?;
    }
    conn.pragma_update(None, "foreign_keys", false)?;
    conn.pragma_update(None, "temp_store", "MEMORY")?;
    conn.pragma_update(None, "mmap_size", 0)?;
    conn.pragma_update(None, "cache_size", WRITER_CACHE)
}

/// The refusal of a file.
pub(crate) fn refusal(code: Code, at: &Location, why: impl Into<String>) -> Fault {
    Fault::from(Refusal::new(code, at.to_string(), why))
}

/// What an error during the opening says about the file.
pub(crate) fn refuse(at: &Location, error: rusqlite::Error) -> Fault {
    let code = match fault::code(&error) {
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => Code::SqliteNotDb,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Code::SqliteLocked,
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Code::SqliteReadonly,
        Some(ErrorCode::CannotOpen) => Code::SqliteDir,
        Some(_) | None => return Fault::Sql(error),
    };
    refusal(code, at, format!("cannot be used: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// C58.
    #[test]
    fn an_old_library_is_refused() {
        for (number, shown) in [(3_051_002, "3.51.2"), (3_046_000, "3.46.0"), (3_007_000, "3.7.0")]
        {
            let refusal = check_version(number).unwrap_err();
            assert_eq!(refusal.code(), Code::SqliteVersion);
            assert!(refusal.to_string().contains(shown), "{refusal}");
        }
        check_version(VERSION_MIN).unwrap();
        check_version(rusqlite::version_number()).unwrap();
    }
}
