//! What a watcher of open questions has shown, and what is new about it. Pure: pages of the list
//! go in, news come out.

use std::collections::BTreeMap;

use holdpoint_graph::{InterruptId, RunId};
use holdpoint_producer::{Fate, GateRow, InterruptView, VoteView};

/// A question by its run and its id.
pub(crate) type Key = (RunId, InterruptId);

/// What happened to a question.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum News {
    /// It is open.
    Opened,
    /// Those who are asked were reminded; these are asked too since then.
    Reminded { also: Vec<String> },
    /// Somebody voted.
    Voted(VoteView),
    /// The state was edited, and it is about something else now.
    ShownAnew,
    /// It is open no more.
    Ended(Fate),
}

/// The questions that were shown and are not over.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    shown: BTreeMap<Key, Shown>,
}

#[derive(Debug)]
struct Shown {
    page: Page,
    row: GateRow,
}

/// A page of the list by the cursor that it begins after; none for the first.
pub(crate) type Page = Option<String>;

impl Watched {
    /// Takes one page of the list, and gives what is new on it.
    pub(crate) fn see(&mut self, page: &Page, rows: &[GateRow]) -> Vec<(GateRow, News)> {
        let mut news = Vec::new();
        for row in rows {
            let key = (row.run.clone(), row.open.interrupt.clone());
            let found = match self.shown.get_mut(&key) {
                Some(shown) => {
                    let found = changes(&shown.row.open, &row.open);
                    shown.row = row.clone();
                    found
                }
                None => {
                    self.shown.insert(key, Shown { page: page.clone(), row: row.clone() });
                    vec![News::Opened]
                }
            };
            news.extend(found.into_iter().map(|found| (row.clone(), found)));
        }
        news
    }

    /// The questions that were on this page and are not any more.
    pub(crate) fn missing(&self, page: &Page, rows: &[GateRow]) -> Vec<Key> {
        let is_there = |(run, interrupt): &&Key| {
            rows.iter().any(|row| row.run == *run && row.open.interrupt == *interrupt)
        };
        let of_page = self.shown.iter().filter(|(_, shown)| shown.page == *page);
        of_page.map(|(key, _)| key).filter(|key| !is_there(key)).cloned().collect()
    }

    /// Takes what became of a missing question, and gives what is new of it. One that is open is
    /// only out of the list for a while, as when a worker writes down a vote.
    pub(crate) fn end(&mut self, key: &Key, fate: Fate) -> Option<(GateRow, News)> {
        match fate {
            Fate::Open => None,
            Fate::Decided(_) | Fate::Closed(_) | Fate::Deleted => {
                let shown = self.shown.remove(key)?;
                Some((shown.row, News::Ended(fate)))
            }
        }
    }

    /// Whether a question of this page is not over.
    pub(crate) fn is_on(&self, page: &Page) -> bool {
        self.shown.values().any(|shown| shown.page == *page)
    }
}

/// What is new of a question that was shown before.
fn changes(before: &InterruptView, now: &InterruptView) -> Vec<News> {
    if before.args_hash != now.args_hash {
        return vec![News::ShownAnew];
    }
    let mut news = Vec::new();
    if before.reminder != now.reminder {
        let is_new = |who: &&String| !before.assignees.contains(who);
        let also = now.assignees.iter().filter(is_new).cloned().collect();
        news.push(News::Reminded { also });
    }
    news.extend(now.votes.iter().skip(before.votes.len()).cloned().map(News::Voted));
    news
}

#[cfg(test)]
mod tests {
    use holdpoint_graph::{GraphId, InterruptKind, RunStatus};
    use holdpoint_producer::Timestamp;
    use serde_json::json;

    use super::*;

    fn row(run: &str) -> GateRow {
        let open = InterruptView {
            interrupt: InterruptId::new("i1").unwrap(),
            node: None,
            gate: Some("ship".to_owned()),
            kind: InterruptKind::Gate,
            question: "Ship it?".to_owned(),
            schema: None,
            allowed: Vec::new(),
            opened_at: Timestamp(0),
            deadline: None,
            assignees: vec!["ann".to_owned()],
            groups: Vec::new(),
            quorum: 2,
            votes: Vec::new(),
            args: None,
            editable: Vec::new(),
            comment_on: Vec::new(),
            reminder: Some(Timestamp(1_000)),
            args_hash: "h1".to_owned(),
        };
        let (run, graph) = (RunId::new(run).unwrap(), GraphId::new("g").unwrap());
        GateRow { session: run.to_string(), run, graph, open }
    }

    fn vote(by: &str) -> VoteView {
        let answer = json!({ "approve": true });
        let by = by.to_owned();
        VoteView { answer, by, at: Timestamp(5), comment: None, from: None, args_hash: None }
    }

    /// What a watcher that has shown `row("r")` says when it reads `now`.
    fn check(now: &GateRow, expect: &[News]) {
        let mut watched = Watched::default();
        assert_eq!(watched.see(&None, &[row("r")]), [(row("r"), News::Opened)]);
        let news = watched.see(&None, std::slice::from_ref(now));
        assert_eq!(news.into_iter().map(|(_, news)| news).collect::<Vec<_>>(), expect);
    }

    #[test]
    fn what_changed_of_a_question_is_told_once() {
        check(&row("r"), &[]);
        let mut now = row("r");
        now.open.votes = vec![vote("ann"), vote("bob")];
        check(&now, &[News::Voted(vote("ann")), News::Voted(vote("bob"))]);
        now.open.reminder = None;
        now.open.assignees.push("boss".to_owned());
        now.open.votes.truncate(1);
        let reminded = News::Reminded { also: vec!["boss".to_owned()] };
        check(&now, &[reminded, News::Voted(vote("ann"))]);
        now.open.args_hash = "h2".to_owned();
        check(&now, &[News::ShownAnew]);
        check(&row("r2"), &[News::Opened]);
    }

    #[test]
    fn a_question_ends_once_and_not_while_it_only_left_the_list() {
        let mut watched = Watched::default();
        let (first, second) = (None, Some("after".to_owned()));
        watched.see(&first, &[row("r1")]);
        watched.see(&second, &[row("r2")]);
        assert!(watched.missing(&first, &[row("r1"), row("r2")]).is_empty());
        let gone = watched.missing(&first, &[]);
        assert_eq!(gone.len(), 1, "the other page was not read");
        let key = gone.first().unwrap();
        assert_eq!(watched.end(key, Fate::Open), None);
        assert_eq!(watched.see(&first, &[row("r1")]), [], "it is back");
        let closed = Fate::Closed(RunStatus::Cancelled);
        let told = watched.end(key, closed.clone());
        assert_eq!(told, Some((row("r1"), News::Ended(closed.clone()))));
        assert_eq!(watched.end(key, closed), None);
        assert!(!watched.is_on(&first) && watched.is_on(&second));
    }
}
