//! Finds what in the namespace contradicts itself, and mends it.
//!
//! A repair is tried inside a savepoint, and what it changed is compared before and after. A look
//! takes every trial back; a repair keeps those that change exactly what was found before.

use holdpoint_storage::Damage;
use rusqlite::{Row, params, types::ValueRef};
use serde_json::{Map, Value};

use crate::{
    aside,
    fault::{Done, Fault},
    place::close_ms,
    questions, row,
    tx::Tx,
};

mod lists;
mod stored;

use stored::{Stored, changes, stored_as};

/// Faults of one kind that one look lists; the next one goes on behind what was mended.
const FAULTS_MAX: i64 = 1_000;

/// Finds what contradicts itself, and writes nothing.
pub(crate) fn faults(tx: &mut Tx<'_>) -> Done<Vec<Damage>> {
    Ok(Look::at(tx, None)?.found.into_iter().map(|(damage, _)| damage).collect())
}

/// Mends what was found; tells for each fault whether it was still as it had been found.
pub(crate) fn repair(tx: &mut Tx<'_>, wanted: &[Damage]) -> Done<Vec<bool>> {
    let found = Look::at(tx, Some(wanted))?.found;
    let is_done = |wanted| found.iter().any(|(damage, is_kept)| *is_kept && damage == wanted);
    Ok(wanted.iter().map(is_done).collect())
}

/// What a look has found so far, and whether the trial was kept.
struct Look<'w> {
    wanted: Option<&'w [Damage]>,
    found: Vec<(Damage, bool)>,
}

/// A fault before it was tried to mend it.
struct Fact {
    check: &'static str,
    about: String,
    text: String,
    action: &'static str,
}

impl Look<'_> {
    fn at<'w>(tx: &mut Tx<'_>, wanted: Option<&'w [Damage]>) -> Done<Look<'w>> {
        tx.write_counts()?;
        let mut look = Look { wanted, found: Vec::new() };
        look.parts_without_run(tx)?;
        look.heads(tx)?;
        look.parts(tx)?;
        look.places(tx)?;
        look.lists(tx)?;
        look.sessions(tx)?;
        look.asides(tx)?;
        look.counts(tx)?;
        Ok(look)
    }

    /// Tries to mend a fault; `read` gives all rows that it may change.
    fn attempt(
        &mut self,
        tx: &mut Tx<'_>,
        fact: Fact,
        read: &dyn Fn(&Tx<'_>) -> Done<Vec<Stored>>,
        mend: &dyn Fn(&mut Tx<'_>) -> Done<()>,
    ) -> Done<()> {
        let mark = tx.mark();
        let before = read(tx)?;
        tx.db.execute(include_str!("../../sql/savepoint.sql"), [])?;
        let tried = mend(tx).and_then(|()| tx.write_counts());
        let changes = match tried {
            Ok(()) => changes(before, read(tx)?),
            Err(Fault::Store(_)) => Vec::new(),
            Err(fault @ Fault::Sql(_)) => return Err(fault),
        };
        let action = if changes.is_empty() { "" } else { fact.action };
        let damage = Damage {
            check: fact.check.to_owned(),
            about: fact.about,
            text: fact.text,
            action: action.to_owned(),
            changes,
        };
        let is_kept = self.wanted.is_some_and(|wanted| wanted.contains(&damage));
        if !is_kept {
            tx.db.execute(include_str!("../../sql/rollback_to_savepoint.sql"), [])?;
            tx.go_back_to(mark);
        }
        tx.db.execute(include_str!("../../sql/release_savepoint.sql"), [])?;
        self.found.push((damage, is_kept));
        Ok(())
    }

    fn parts_without_run(&mut self, tx: &mut Tx<'_>) -> Done<()> {
        let sql = include_str!("../../sql/keys_without_run.sql");
        let keys: Vec<i64> = tx.db.all(sql, [FAULTS_MAX], |row| Ok(row.get(0)?))?;
        for key in keys {
            let fact = Fact {
                check: "orphan",
                about: key.to_string(),
                text: format!("there are parts of the run with key {key}, which does not exist"),
                action: "remove them",
            };
            self.attempt(tx, fact, &|tx| rows_of_run(tx, key), &|tx| delete_parts(tx, key))?;
        }
        Ok(())
    }

    /// Heads that cannot be read, and those that stand at another time than they say.
    fn heads(&mut self, tx: &mut Tx<'_>) -> Done<()> {
        let (mut damaged, mut misplaced, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
        let sql = include_str!("../../sql/all_runs.sql");
        tx.db.all(sql, [tx.db.ns], |found| {
            match row::decode(found, &tx.db.lanes()) {
                Ok(run) if run.place.close_ms != close_ms(&run.head) => {
                    misplaced.push((run.head.run.to_string(), run.key));
                }
                Ok(run) => {
                    let lists = questions::wrong_lists(tx.db, &run)?.into_iter();
                    wrong.extend(
                        lists.map(|(id, lists)| (run.key, run.head.run.clone(), id, lists)),
                    );
                }
                Err(Fault::Store(error)) => damaged.push((found.get(0)?, error.to_string())),
                Err(fault @ Fault::Sql(_)) => return Err(fault),
            }
            Ok(())
        })?;
        for (key, text) in damaged {
            let about = id_of(tx, key)?;
            let fact = Fact { check: "unreadable", about, text, action: "set it aside" };
            self.attempt(tx, fact, &|tx| run_row(tx, key), &|tx| aside::set_aside(tx, key))?;
        }
        for (id, key) in misplaced {
            self.place(tx, id, key)?;
        }
        for (key, run, question, lists) in wrong {
            let text = questions::said_of_lists(&run, &question);
            let about = run.to_string();
            let fact = Fact { check: "misplaced", about, text, action: "name those of its run" };
            let sql = include_str!("../../sql/set_lists.sql");
            let mend =
                |tx: &mut Tx<'_>| tx.db.execute(sql, params![key, question, lists]).map(drop);
            self.attempt(tx, fact, &|tx| rows_of_run(tx, key), &mend)?;
        }
        Ok(())
    }

    /// Runs that lost a part. One that a worker has is ended by that worker.
    fn parts(&mut self, tx: &mut Tx<'_>) -> Done<()> {
        for (id, key) in named(tx, include_str!("../../sql/runs_without_parts.sql"))? {
            let is_held =
                tx.db.run_by_key(key).is_ok_and(|run| run.place.status.as_str() == "running");
            let action = if is_held { "" } else { "set it aside" };
            let text = format!("run {id} has not all of its parts, or more of them than it counts");
            let fact = Fact { check: "parts", about: id, text, action };
            let mend = |tx: &mut Tx<'_>| match is_held {
                true => Ok(()),
                false => aside::set_aside(tx, key),
            };
            self.attempt(tx, fact, &|tx| run_row(tx, key), &mend)?;
        }
        for (id, key) in named(tx, include_str!("../../sql/runs_with_wrong_counts.sql"))? {
            let text = format!("run {id} counts its questions or answers wrong");
            let fact = Fact { check: "count", about: id, text, action: "count again" };
            let read = |tx: &Tx<'_>| Ok([run_row(tx, key)?, rows_of_run(tx, key)?].concat());
            self.attempt(tx, fact, &read, &|tx| recount(tx, key))?;
        }
        Ok(())
    }

    fn places(&mut self, tx: &mut Tx<'_>) -> Done<()> {
        for (id, key) in named(tx, include_str!("../../sql/misplaced_runs.sql"))? {
            self.place(tx, id, key)?;
        }
        Ok(())
    }

    /// Puts a run where its state says.
    fn place(&mut self, tx: &mut Tx<'_>, id: String, key: i64) -> Done<()> {
        let text = format!("run {id} does not stand where its state belongs");
        let fact = Fact { check: "misplaced", about: id, text, action: "put it there" };
        self.attempt(tx, fact, &|tx| run_row(tx, key), &|tx| settle(tx, key))
    }

    fn sessions(&mut self, tx: &mut Tx<'_>) -> Done<()> {
        let sql = include_str!("../../sql/lost_sessions.sql");
        let lost: Vec<String> =
            tx.db.all(sql, params![tx.db.ns, FAULTS_MAX], |row| Ok(row.get(0)?))?;
        for session in lost {
            let text = format!("session {session} starts from a run that does not exist");
            let action = "let it start from nothing";
            let fact = Fact { check: "session", about: session.clone(), text, action };
            let read = |tx: &Tx<'_>| session_row(tx, &session);
            let sql = include_str!("../../sql/forget_session_last.sql");
            let mend = |tx: &mut Tx<'_>| tx.db.execute(sql, params![tx.db.ns, session]).map(drop);
            self.attempt(tx, fact, &read, &mend)?;
        }
        Ok(())
    }

    /// Runs that were set aside: those that can be read again are taken back.
    fn asides(&mut self, tx: &mut Tx<'_>) -> Done<()> {
        let sql = include_str!("../../sql/asides.sql");
        let asides = tx.db.all(sql, params![tx.db.ns, FAULTS_MAX], |found| {
            let is_sound = row::decode(found, &tx.db.lanes()).is_ok();
            let id = found.get::<_, String>("id").unwrap_or_else(|_| "?".to_owned());
            Ok((id, found.get::<_, i64>(0)?, is_sound))
        })?;
        for (id, key, is_sound) in asides {
            let is_whole = is_sound && is_whole(tx, key)?;
            let (check, action, what) = match is_whole {
                true => ("misplaced", "take it back", "was set aside and can be read"),
                false => ("aside", "", "is set aside: it cannot be read"),
            };
            let text = format!("run {id} {what}");
            let fact = Fact { check, about: id, text, action };
            let mend = |tx: &mut Tx<'_>| if is_whole { take_back(tx, key) } else { Ok(()) };
            self.attempt(tx, fact, &|tx| run_row(tx, key), &mend)?;
        }
        Ok(())
    }

    fn counts(&mut self, tx: &mut Tx<'_>) -> Done<()> {
        let sql = include_str!("../../sql/wrong_counts.sql");
        let wrong: Vec<(String, String, i64, i64)> = tx
            .db
            .all(sql, [tx.db.ns], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?)))?;
        for (queue, status, counted, found) in wrong {
            let text =
                format!("queue {queue} counts {counted} runs as {status}, there are {found}");
            let fact = Fact { check: "count", about: queue.clone(), text, action: "count again" };
            let read = |tx: &Tx<'_>| {
                let wrong = tx.db.all(sql, [tx.db.ns], |row| {
                    let (of, is): (String, String) = (row.get(0)?, row.get(1)?);
                    Ok((of == queue && is == status).then_some(row.get::<_, i64>(2)?))
                })?;
                let stored = wrong.into_iter().flatten().next().unwrap_or(found);
                Ok(vec![stored_as("counts", &format!("{queue} {status}"), stored.to_string())])
            };
            let set = include_str!("../../sql/set_count.sql");
            let mend = |tx: &mut Tx<'_>| {
                tx.db.execute(set, params![tx.db.ns, queue, status, found]).map(drop)
            };
            self.attempt(tx, fact, &read, &mend)?;
        }
        Ok(())
    }
}

fn named(tx: &Tx<'_>, sql: &str) -> Done<Vec<(String, i64)>> {
    tx.db.all(sql, params![tx.db.ns, FAULTS_MAX], |row| Ok((row.get(0)?, row.get(1)?)))
}

fn id_of(tx: &Tx<'_>, key: i64) -> Done<String> {
    let sql = include_str!("../../sql/run_by_key.sql");
    let id = tx.db.one(sql, [key], |row| Ok(row.get::<_, String>("id").unwrap_or_default()))?;
    Ok(id.unwrap_or_default())
}

/// The row of a run, whatever can be read of it.
fn run_row(tx: &Tx<'_>, key: i64) -> Done<Vec<Stored>> {
    let sql = include_str!("../../sql/run_by_key.sql");
    tx.db.all(sql, [key], |row| Ok(stored_as("runs", &key.to_string(), to_text(row)?)))
}

fn session_row(tx: &Tx<'_>, session: &str) -> Done<Vec<Stored>> {
    let sql = include_str!("../../sql/session_row.sql");
    tx.db.all(sql, params![tx.db.ns, session], |row| {
        Ok(stored_as("sessions", session, to_text(row)?))
    })
}

fn rows_of_run(tx: &Tx<'_>, key: i64) -> Done<Vec<Stored>> {
    let sql = include_str!("../../sql/rows_of_run.sql");
    let rows: Vec<(String, String)> =
        tx.db.all(sql, [key], |row| Ok((row.get(0)?, row.get(1)?)))?;
    // The text of a row names it best: not all tables have a key of one column.
    Ok(rows.into_iter().map(|(table, text)| stored_as(&table, &text, text.clone())).collect())
}

/// A row as JSON; bytes as hex digits.
fn to_text(row: &Row<'_>) -> Done<String> {
    let mut columns = Map::new();
    for at in 0..row.as_ref().column_count() {
        let name = row.as_ref().column_name(at)?.to_owned();
        let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02X}")).collect::<String>();
        let value = match row.get_ref(at)? {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(number) => Value::from(number),
            ValueRef::Real(number) => Value::from(number),
            ValueRef::Text(text) => Value::from(String::from_utf8_lossy(text).into_owned()),
            ValueRef::Blob(bytes) => Value::from(hex(bytes)),
        };
        columns.insert(name, value);
    }
    Ok(Value::Object(columns).to_string())
}

fn delete_parts(tx: &Tx<'_>, key: i64) -> Done<()> {
    for sql in super::prune::PARTS {
        tx.db.execute(sql, [key])?;
    }
    Ok(())
}

/// Counts the questions and answers of a run again; one that has ended has none.
fn recount(tx: &mut Tx<'_>, key: i64) -> Done<()> {
    let run = tx.db.run_by_key(key)?;
    if run.head.status().is_terminal() {
        tx.db.execute(include_str!("../../sql/delete_interrupts.sql"), [key])?;
        tx.db.execute(include_str!("../../sql/delete_inbox.sql"), [key])?;
    }
    tx.db.execute(include_str!("../../sql/count_parts.sql"), [key]).map(drop)
}

fn settle(tx: &mut Tx<'_>, key: i64) -> Done<()> {
    let mut run = tx.db.run_by_key(key)?;
    if let Some(session) = &run.head.session {
        let sql = include_str!("../../sql/insert_session.sql");
        tx.db.execute(sql, params![tx.db.ns, session.as_str(), run.head.graph.as_str()])?;
    } else {
        run.turn = None;
    }
    tx.replace(&mut run)
}

/// Whether a run that was set aside has all its parts.
fn is_whole(tx: &Tx<'_>, key: i64) -> Done<bool> {
    let sql = include_str!("../../sql/aside_is_whole.sql");
    Ok(tx.db.number(sql, [key])? == 1)
}

fn take_back(tx: &mut Tx<'_>, key: i64) -> Done<()> {
    let sql = include_str!("../../sql/take_back.sql");
    if tx.db.execute(sql, params![key, tx.db.ns])? == 0 {
        return Ok(());
    }
    let sql = include_str!("../../sql/take_questions_back.sql");
    tx.db.execute(sql, params![key, tx.db.ns])?;
    let run = tx.db.run_by_key(key)?;
    tx.count(&run.head.queue, run.head.status(), 1);
    settle(tx, key)
}
