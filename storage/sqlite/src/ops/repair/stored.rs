//! Stored rows as a repair compares them: before and after a trial.

use holdpoint_storage::Change;

/// A stored row: table, row, and its columns as JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stored {
    pub(super) place: String,
    pub(super) item: String,
    pub(super) text: String,
}

pub(super) fn stored_as(place: &str, item: &str, text: String) -> Stored {
    Stored { place: place.to_owned(), item: item.to_owned(), text }
}

/// The rows that differ.
pub(super) fn changes(before: Vec<Stored>, after: Vec<Stored>) -> Vec<Change> {
    let text_in = |rows: &[Stored], row: &Stored| {
        let same = rows.iter().find(|other| other.place == row.place && other.item == row.item);
        same.map(|row| row.text.clone())
    };
    let change = |row: &Stored| Change {
        kind: "row".to_owned(),
        place: row.place.clone(),
        item: row.item.clone(),
        before: text_in(&before, row),
        after: text_in(&after, row),
    };
    let new = after.iter().filter(|row| text_in(&before, row).is_none());
    let all = before.iter().chain(new).map(change);
    all.filter(|change| change.before != change.after).collect()
}
