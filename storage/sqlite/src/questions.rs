//! Open questions in lists: pages of them, and whether the lists hold what they must.
//!
//! The table `listed` follows the questions by triggers; the view `placed` is what it must hold.

use std::collections::BTreeSet;

use holdpoint_graph::{Code, InterruptId, Refusal, RunId};
use holdpoint_storage::{
    Cursor, FoundQuestion, ListedQuestion, OpenQuestion, Page, QuestionFilter, QuestionPage,
    QuestionSearch, RunHead, is_of_asked, question_lists,
};
use rusqlite::{Row, params};

use crate::{
    db::{Db, id},
    fault::{Done, corrupt},
    read::lists::readable,
    row::RunRow,
};

/// Up to which number the rows of lists are counted to find the shortest ones.
const COUNT_MAX: i64 = 1_000;

/// Open questions that a filter shows.
pub(crate) fn page(
    db: &Db,
    filter: &QuestionFilter,
    after: Option<&Cursor>,
    limit: usize,
) -> Done<Page<OpenQuestion>> {
    let mut page = QuestionPage::new(filter, after, limit)?;
    if let Some(run) = &filter.run {
        let Some(run) = db.run_by_id(run)? else { return Ok(page.of(Vec::new())) };
        let sql = include_str!("../sql/questions_of_run.sql");
        let stored = db.all(sql, [run.key], Stored::read)?;
        return Ok(page.of(stored.into_iter().map(|found| found.of(&run)).collect()));
    }
    while let Some(search) = page.search() {
        let found = find(db, &search)?;
        page.take(&search, found);
    }
    Ok(page.done())
}

/// A row of a list: its number, the question, the key of its run.
type Place = (i64, String, i64);

fn find(db: &Db, search: &QuestionSearch) -> Done<Vec<FoundQuestion>> {
    let (at_ms, behind) = search.after.clone().unwrap_or((i64::MIN, String::new()));
    let (behind, key) = match behind.rsplit_once(':') {
        Some((id, key)) => (id, key.parse::<i64>().map_err(|_| bad_cursor(key))?),
        None => ("", i64::MIN),
    };
    let max = i64::try_from(search.max).unwrap_or(i64::MAX);
    // Rows that stand in several of the lists are one.
    let mut found: BTreeSet<Place> = BTreeSet::new();
    for list in shortest(db, search)? {
        let sql = include_str!("../sql/listed_after.sql");
        let params = params![db.ns, list, at_ms, behind, key, max];
        found.extend(db.all(sql, params, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?);
    }
    found.into_iter().take(search.max).map(|place| read(db, search, place)).collect()
}

/// The lists of the group that has the fewest rows, behind their kinds.
fn shortest(db: &Db, search: &QuestionSearch) -> Done<Vec<String>> {
    let mut groups = search.groups.iter().map(|lists| {
        let kinds = |list| search.kinds.iter().map(move |kind| format!("{kind}:{list}"));
        lists.iter().flat_map(kinds).collect::<Vec<_>>()
    });
    if search.groups.len() == 1 {
        return Ok(groups.next().unwrap_or_default());
    }
    let mut best = (i64::MAX, Vec::new());
    for lists in groups {
        let sql = include_str!("../sql/count_listed.sql");
        let counts = lists.iter().map(|list| db.number(sql, params![db.ns, list, COUNT_MAX]));
        let count = counts.sum::<Done<i64>>()?;
        if count < best.0 {
            best = (count, lists);
        }
    }
    Ok(best.1)
}

/// The question of a row; one that stands in no list of some group is left out before its run is
/// read, and so is one that cannot be read.
fn read(db: &Db, search: &QuestionSearch, (at_ms, interrupt, key): Place) -> Done<FoundQuestion> {
    let sql = include_str!("../sql/question.sql");
    let read = || match db.one(sql, params![key, interrupt], Stored::read)? {
        Some(stored) if search.accepts(&stored.lists) => Ok(Some(stored.of(&db.run_by_key(key)?))),
        Some(_) | None => Ok(None),
    };
    let question = readable(read())?.flatten();
    Ok(FoundQuestion { at_ms, id: format!("{interrupt}:{key}"), question })
}

/// A question without the head of its run.
struct Stored {
    interrupt: InterruptId,
    opened_at_ms: i64,
    deadline_ms: Option<i64>,
    lists: Vec<String>,
    body: Vec<u8>,
}

impl Stored {
    fn read(row: &Row<'_>) -> Done<Self> {
        let (opened_at_ms, deadline_ms, body) = (row.get(2)?, row.get(3)?, row.get(5)?);
        let interrupt: InterruptId = id(row, 1)?;
        let lists = serde_json::from_str(&row.get::<_, String>(4)?)
            .map_err(|error| corrupt(format!("question {interrupt}"), error))?;
        Ok(Self { interrupt, opened_at_ms, deadline_ms, lists, body })
    }

    fn of(self, run: &RunRow) -> ListedQuestion {
        let Self { interrupt, opened_at_ms, deadline_ms, lists, body } = self;
        let question = OpenQuestion { head: run.head.clone(), interrupt, opened_at_ms, body };
        ListedQuestion { question, deadline_ms, lists }
    }
}

/// The stored form of the lists in which a question of a run stands.
pub(crate) fn lists_json(head: &RunHead, asked: &[String]) -> String {
    let lists = question_lists(&head.graph, &head.tags, asked);
    serde_json::to_string(&lists).expect("a list of texts always has a text")
}

/// The questions of a run that name other lists than the run does: with what they name, and what
/// they should.
pub(crate) fn wrong_lists(db: &Db, run: &RunRow) -> Done<Vec<(String, String)>> {
    if run.open_count == 0 {
        return Ok(Vec::new());
    }
    let sql = include_str!("../sql/lists_of_run.sql");
    let named: Vec<(String, String)> =
        db.all(sql, [run.key], |row| Ok((row.get(0)?, row.get(1)?)))?;
    let wrong = named.into_iter().filter_map(|(id, named)| {
        let mut asked: Vec<String> = serde_json::from_str(&named).unwrap_or_default();
        asked.retain(|list| is_of_asked(list));
        let right = lists_json(&run.head, &asked);
        (named != right).then_some((id, right))
    });
    Ok(wrong.collect())
}

/// What is said of a question that names other lists than its run.
pub(crate) fn said_of_lists(run: &RunId, question: &str) -> String {
    format!("question {question} of run {run} names other lists than its run")
}

/// An entry of a list, as the doctor meets it.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) list: String,
    pub(crate) at_ms: i64,
    pub(crate) id: String,
    pub(crate) run: i64,
}

impl Entry {
    pub(crate) fn said(&self, what: &str) -> String {
        let Self { list, at_ms, id, run } = self;
        format!("question {id} of the run with key {run} {what} {list} at {at_ms}")
    }
}

/// Reads a row of `listed` without its namespace.
pub(crate) fn entry(row: &Row<'_>) -> Done<Entry> {
    let (list, at_ms, id, run) = (row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?);
    Ok(Entry { list, at_ms, id, run })
}

fn bad_cursor(key: &str) -> Refusal {
    Refusal::new(Code::Cursor, "after", format!("ends in {key:?}, which is no number"))
}
