//! Lists of questions: whether each holds what it must, and nothing else.

use rusqlite::params;

use super::{FAULTS_MAX, Fact, Look, Stored, stored_as, to_text};
use crate::{
    fault::Done,
    questions::{self, Entry},
    tx::Tx,
};

impl Look<'_> {
    /// Entries that are missing in lists of questions, and those that are there in vain.
    pub(super) fn lists(&mut self, tx: &mut Tx<'_>) -> Done<()> {
        for (check, what, action, found, mend) in [
            (
                "missing",
                "is missing in",
                "put it there",
                include_str!("../../../sql/unlisted.sql"),
                include_str!("../../../sql/put_listed.sql"),
            ),
            (
                "orphan",
                "does not belong in",
                "remove that entry",
                include_str!("../../../sql/listed_in_vain.sql"),
                include_str!("../../../sql/delete_listed.sql"),
            ),
        ] {
            for entry in tx.db.all(found, params![tx.db.ns, FAULTS_MAX], questions::entry)? {
                let (about, text) = (entry.run.to_string(), entry.said(what));
                let fact = Fact { check, about, text, action };
                let Entry { list, at_ms, id, run } = &entry;
                let mend = |tx: &mut Tx<'_>| {
                    tx.db.execute(mend, params![tx.db.ns, list, at_ms, id, run]).map(drop)
                };
                self.attempt(tx, fact, &|tx| listed_row(tx, &entry), &mend)?;
            }
        }
        Ok(())
    }
}

fn listed_row(tx: &Tx<'_>, entry: &Entry) -> Done<Vec<Stored>> {
    let Entry { list, at_ms, id, run } = entry;
    let sql = include_str!("../../../sql/listed_row.sql");
    let item = format!("{list} {at_ms} {id} {run}");
    tx.db.all(sql, params![tx.db.ns, list, at_ms, id, run], |row| {
        Ok(stored_as("listed", &item, to_text(row)?))
    })
}
