//! Lists and pages of questions, without a store.

use holdpoint_graph::{Fingerprint, Life, QueueId};

use super::*;
use crate::{ChainHash, RunHead};

#[test]
fn words_come_back_and_have_no_blanks() {
    for text in ["", "ann", "ann lee", "100 %", "%20", "a\nb", "%%0A \n%"] {
        let word = to_word(text);
        assert!(!word.contains([' ', '\n']), "{word:?}");
        assert_eq!(from_word(&word), text);
    }
}

#[test]
fn a_question_stands_in_each_list_once() {
    let names = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
    let graph = GraphId::new("refunds").unwrap();
    let tags = names(&["team=a", "team=a"]);
    let of_all = question_lists(&graph, &tags, &[]);
    assert_eq!(of_all, names(&["all", "g:refunds", "t:team=a"]));
    let asked = asked(&names(&["ann lee", "bob", "bob"]), &names(&["ops"]));
    assert_eq!(asked, names(&["a:ann%20lee", "a:bob", "m:ops"]));
    let of_some = question_lists(&graph, &[], &asked);
    assert_eq!(of_some, names(&["a:ann%20lee", "a:bob", "g:refunds", "m:ops", "some"]));
    assert!(of_some.iter().filter(|list| is_of_asked(list)).eq(asked.iter()));
}

#[test]
fn a_cursor_of_another_order_is_refused() {
    for (order, id, is_good) in [
        (GateOrder::Oldest, "oq1 r1", true),
        (GateOrder::Oldest, "dq1 r1", false),
        (GateOrder::Deadline, "dq1 r1", true),
        (GateOrder::Deadline, "u", true),
        (GateOrder::Deadline, "oq1 r1", false),
        (GateOrder::Oldest, "", false),
    ] {
        let filter = QuestionFilter { order, ..QuestionFilter::default() };
        let cursor = Cursor { at_ms: 5, id: id.to_owned() };
        let page = QuestionPage::new(&filter, Some(&cursor), 1);
        assert_eq!(page.is_ok(), is_good, "{order:?} {id:?}");
    }
}

fn head() -> RunHead {
    RunHead {
        run: "r1".parse().unwrap(),
        graph: "refunds".parse().unwrap(),
        queue: QueueId::new("default").unwrap(),
        session: None,
        fingerprint: None::<Fingerprint>,
        life: Life::Queued,
        priority: 4,
        tags: Vec::new(),
        seq: 0,
        hash: ChainHash::default(),
        snapshot_seq: 0,
        tail_bytes: 0,
        epoch: 0,
        claims: 0,
        lost_in_row: 0,
        lost_in_life: 0,
        losses: Vec::new(),
        cancel: None,
        payload_hash: String::new(),
        created_at_ms: 0,
        updated_at_ms: 0,
        started_at_ms: None,
        finished_at_ms: None,
        expires_at_ms: None,
        deadline_ms: None,
    }
}

/// A row of the list of a graph, whose question has no tag.
fn row(n: usize) -> FoundQuestion {
    let (at_ms, id) = (n as i64, format!("q{n:05} r1"));
    let interrupt = format!("q{n:05}").parse().unwrap();
    let question = OpenQuestion { head: head(), interrupt, opened_at_ms: at_ms, body: Vec::new() };
    let lists = question_lists(&question.head.graph, &[], &[]);
    FoundQuestion {
        at_ms,
        id,
        question: Some(ListedQuestion { question, deadline_ms: None, lists }),
    }
}

/// A page over `count` rows; how many rows were looked at, and the page.
fn page_of(
    filter: &QuestionFilter,
    count: usize,
    after: Option<&Cursor>,
    limit: usize,
) -> (usize, Page<OpenQuestion>) {
    let mut page = QuestionPage::new(filter, after, limit).unwrap();
    let mut looked = 0;
    while let Some(search) = page.search() {
        let first =
            search.after.as_ref().map_or(0, |(at_ms, _)| usize::try_from(*at_ms).unwrap() + 1);
        let found: Vec<_> = (first..count).take(search.max).map(row).collect();
        looked += found.len();
        page.take(&search, found);
    }
    (looked, page.done())
}

#[test]
fn a_page_without_conditions_looks_at_one_row_more() {
    let filter = QuestionFilter::default();
    let (looked, page) = page_of(&filter, 500, None, 50);
    assert_eq!((looked, page.rows.len()), (51, 50));
    let (looked, rest) = page_of(&filter, 500, page.next.as_ref(), 450);
    assert_eq!((looked, rest.rows.len(), rest.next), (450, 450, None));
}

/// Conditions that hold together for none end a call after so many rows, not after all.
#[test]
fn a_call_looks_at_a_bounded_number_of_rows() {
    let graph = Some(GraphId::new("refunds").unwrap());
    let filter = QuestionFilter { graph, tag: Some("a=b".to_owned()), ..Default::default() };
    let (mut calls, mut after) = (0, None);
    loop {
        let (looked, page) = page_of(&filter, 2_500, after.as_ref(), 50);
        assert!(looked <= LOOK_MAX && page.rows.is_empty(), "{looked}");
        calls += 1;
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(calls, 3);
}

/// Behind the first question that is too young nothing is looked at.
#[test]
fn an_age_ends_the_list() {
    let filter = QuestionFilter { opened_before_ms: Some(30), ..Default::default() };
    let (looked, page) = page_of(&filter, 10_000, None, 200);
    assert_eq!((looked, page.rows.len(), page.next), (SEARCH_MAX, 30, None));
}
