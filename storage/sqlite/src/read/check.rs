//! The doctor's questions: settings, the file, and whether heads, parts and indexes agree.

use holdpoint_storage::{Finding, Level};
use rusqlite::{Params, Row, params};

use crate::{
    config::{Location, SqliteConfig},
    db::Db,
    fault::{Done, Fault},
    open::check_version,
    place::close_ms,
    questions, row,
};

/// Findings of one kind that are listed one by one.
const SHOWN_MAX: i64 = 20;
const RESTORE: &str = "doctor --repair";

/// Checks settings, indexes and records.
pub(crate) fn check(db: &Db, config: &SqliteConfig) -> Done<Vec<Finding>> {
    let mut findings = settings(db, config)?;
    findings.push(integrity(db)?);
    findings.extend(orphans(db)?);
    findings.extend(conservation(db)?);
    findings.push(heads(db)?);
    findings.extend(asides(db)?);
    Ok(findings)
}

fn settings(db: &Db, config: &SqliteConfig) -> Done<Vec<Finding>> {
    let version = match check_version(rusqlite::version_number()) {
        Ok(()) => Finding::new(Level::Ok, "version", rusqlite::version(), ""),
        Err(refusal) => Finding::new(Level::Bad, "version", refusal, "use a newer library"),
    };
    let sql = include_str!("../../sql/journal_mode.sql");
    let mode: Option<String> = db.one(sql, [], |row| Ok(row.get(0)?))?;
    let mode = mode.unwrap_or_default();
    let journal = match (&config.location, mode.as_str()) {
        (Location::File(_), "wal") => Finding::new(Level::Ok, "journal_mode", "wal", ""),
        (Location::File(_), other) => {
            let fix = "close all programs that use the file, then open it again";
            Finding::new(Level::Bad, "journal_mode", format!("is {other}, not wal"), fix)
        }
        (Location::Memory, _) => {
            let text = "in memory: nothing survives the process";
            Finding::new(Level::Warn, "journal_mode", text, "use a file")
        }
    };
    // Each connection has its own setting; the writer's is what acknowledgements rest on.
    let word = config.synchronous.as_str();
    let synchronous = match config.durability() {
        holdpoint_storage::Durability::Buffered => {
            let text = format!("{word}: a power cut may take the last acknowledged writes");
            Finding::new(Level::Warn, "synchronous", text, "use FULL")
        }
        holdpoint_storage::Durability::Fsynced | holdpoint_storage::Durability::Replicated => {
            Finding::new(Level::Ok, "synchronous", word, "")
        }
    };
    Ok(vec![version, journal, synchronous])
}

fn integrity(db: &Db) -> Done<Finding> {
    let said: Vec<String> =
        db.all(include_str!("../../sql/quick_check.sql"), [], |row| Ok(row.get(0)?))?;
    Ok(match said.first().map(String::as_str) {
        Some("ok") => Finding::new(Level::Ok, "integrity", "the file is sound", ""),
        Some(_) | None => {
            let fix = "stop all workers and restore a backup";
            Finding::new(Level::Bad, "integrity", said.join("; "), fix)
        }
    })
}

/// Parts without a run, and runs without their parts.
fn orphans(db: &Db) -> Done<Vec<Finding>> {
    let sql = include_str!("../../sql/rows_without_run.sql");
    let parts = db.all(sql, [SHOWN_MAX], |row| {
        let (part, run): (String, i64) = (row.get(0)?, row.get(1)?);
        Ok(format!("there is a {part} of the run with key {run}, which does not exist"))
    })?;
    let sql = include_str!("../../sql/runs_without_parts.sql");
    let mut runs = named(db, sql, "has not all of its parts, or more of them than it counts")?;
    let sql = include_str!("../../sql/runs_with_wrong_counts.sql");
    runs.extend(named(db, sql, "counts its questions or answers wrong")?);
    let sql = include_str!("../../sql/lost_sessions.sql");
    let sessions = db.all(sql, params![db.ns, SHOWN_MAX], |row| {
        Ok(format!("session {} starts from a run that does not exist", row.get::<_, String>(0)?))
    })?;
    let mut findings = summary("orphans", parts, RESTORE);
    findings.extend(summary("parts", runs, RESTORE));
    findings.extend(summary("sessions", sessions, RESTORE));
    Ok(findings)
}

/// Each run is in the indexes of its state and in no other, and all are counted.
fn conservation(db: &Db) -> Done<Vec<Finding>> {
    let sql = include_str!("../../sql/misplaced_runs.sql");
    let misplaced = named(db, sql, "does not stand where its state belongs")?;
    let sql = include_str!("../../sql/wrong_counts.sql");
    let wrong = db.all(sql, [db.ns], |row| {
        let (queue, status): (String, String) = (row.get(0)?, row.get(1)?);
        let (counted, found): (i64, i64) = (row.get(2)?, row.get(3)?);
        Ok(format!("queue {queue} counts {counted} runs as {status}, there are {found}"))
    })?;
    let unlisted = listed(db, include_str!("../../sql/unlisted.sql"), "is missing in")?;
    let in_vain = listed(db, include_str!("../../sql/listed_in_vain.sql"), "does not belong in")?;
    let mut findings = summary("places", misplaced, RESTORE);
    findings.extend(summary("lists", [unlisted, in_vain].concat(), RESTORE));
    findings.extend(summary("conservation", wrong, RESTORE));
    Ok(findings)
}

/// Questions that stand in other lists than they name.
fn listed(db: &Db, sql: &str, what: &str) -> Done<Vec<String>> {
    let entries = db.all(sql, params![db.ns, SHOWN_MAX], questions::entry)?;
    Ok(entries.iter().map(|entry| entry.said(what)).collect())
}

/// Whether all heads can be read, and their questions name the right lists.
fn heads(db: &Db) -> Done<Finding> {
    let (mut sound, mut damaged) = (0_u64, Vec::new());
    let read = |row: &Row<'_>| match row::decode(row, &db.lanes()) {
        Ok(run) if run.place.close_ms != close_ms(&run.head) => {
            damaged.push(format!("run {} stands to be ended at another time", run.head.run));
            Ok(())
        }
        Ok(run) => {
            sound += 1;
            let wrong = questions::wrong_lists(db, &run)?.into_iter();
            damaged.extend(wrong.map(|(id, _)| questions::said_of_lists(&run.head.run, &id)));
            Ok(())
        }
        Err(Fault::Store(error)) => {
            damaged.push(error.to_string());
            Ok(())
        }
        Err(fault @ Fault::Sql(_)) => Err(fault),
    };
    db.all(include_str!("../../sql/all_runs.sql"), [db.ns], read)?;
    Ok(if damaged.is_empty() {
        Finding::new(Level::Ok, "heads", format!("{sound} runs can be read"), "")
    } else {
        damaged.truncate(SHOWN_MAX as usize);
        Finding::new(Level::Bad, "heads", damaged.join("; "), RESTORE)
    })
}

/// Runs that were set aside stop nobody, and wait for a person.
fn asides(db: &Db) -> Done<Vec<Finding>> {
    let sql = include_str!("../../sql/asides.sql");
    db.all(sql, params![db.ns, SHOWN_MAX], |row| {
        let id = row.get::<_, String>("id").unwrap_or_else(|_| "?".to_owned());
        let text = format!("run {id} is set aside because it could not be read");
        let fix = "save what is needed of it; doctor --repair takes it back once it can be read";
        Ok(Finding::new(Level::Warn, "aside", text, fix))
    })
}

fn named(db: &Db, sql: &str, what: &str) -> Done<Vec<String>> {
    ids(db, sql, params![db.ns, SHOWN_MAX], |id| format!("run {id} {what}"))
}

fn ids<F>(db: &Db, sql: &str, params: impl Params, say: F) -> Done<Vec<String>>
where
    F: Fn(String) -> String,
{
    db.all(sql, params, |row| Ok(say(row.get(0)?)))
}

/// One finding for each fault, or one that says that there is none.
fn summary(check: &str, faults: Vec<String>, fix: &str) -> Vec<Finding> {
    if faults.is_empty() {
        return vec![Finding::new(Level::Ok, check, "nothing found", "")];
    }
    faults.iter().map(|fault| Finding::new(Level::Bad, check, fault, fix)).collect()
}
