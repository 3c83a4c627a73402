//! The schema: whose file it is, how old it is, and how it comes up to date.

use holdpoint_graph::Code;
use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::{
    config::Location,
    fault::Done,
    open::{refusal, refuse},
};

/// `Hold` as a number: the mark of our files.
const APPLICATION: i32 = 0x486f_6c64;

/// The steps from one schema to the next; a file's `user_version` says how many it has had.
const MIGRATIONS: [&str; 1] = [include_str!("../sql/migrations/0001_init.sql")];

/// Refuses a file that is no database, or another program's.
pub(crate) fn check_owner(conn: &Connection, at: &Location) -> Done<()> {
    let number = |sql: &str| conn.query_row(sql, [], |row| row.get::<_, i64>(0));
    let tables = number(include_str!("../sql/count_tables.sql"));
    let tables = tables.map_err(|error| refuse(at, error))?;
    let owner = number(include_str!("../sql/application_id.sql"));
    let owner = owner.map_err(|error| refuse(at, error))?;
    if tables > 0 && owner != i64::from(APPLICATION) {
        let why = format!("is a database of another program (application id {owner})");
        return Err(refusal(Code::SqliteNotDb, at, why));
    }
    Ok(())
}

/// Brings the schema up to date; processes that start at the same time do it one after another.
pub(crate) fn prepare(conn: &Connection, at: &Location) -> Done<()> {
    if version(conn, at)? == MIGRATIONS.len() {
        return Ok(());
    }
    let named = |error| refuse(at, error);
    let tx = Transaction::new_unchecked(conn, TransactionBehavior::Immediate).map_err(named)?;
    let done = version(&tx, at)?;
    for migration in MIGRATIONS.iter().skip(done) {
        tx.execute_batch(migration).map_err(named)?;
    }
    tx.pragma_update(None, "application_id", APPLICATION).map_err(named)?;
    tx.pragma_update(None, "user_version", MIGRATIONS.len() as i64).map_err(named)?;
    tx.commit().map_err(named)
}

fn version(conn: &Connection, at: &Location) -> Done<usize> {
    let sql = include_str!("../sql/user_version.sql");
    let found: i64 = conn.query_row(sql, [], |row| row.get(0)).map_err(|e| refuse(at, e))?;
    match usize::try_from(found) {
        Ok(version) if version <= MIGRATIONS.len() => Ok(version),
        Ok(_) | Err(_) => {
            let known = MIGRATIONS.len();
            let why =
                format!("has schema {found}; this program knows up to {known}: use a newer one");
            Err(refusal(Code::SchemaNewer, at, why))
        }
    }
}
