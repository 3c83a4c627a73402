//! Lists of open questions: every condition, both orders, page by page, and what changes them.
#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a property fails by a panic")]

use std::collections::BTreeSet;

use holdpoint_graph::{Code, GraphId};

use super::{
    Bench,
    world::{HOUR_MS, World, claim_request, id, names, new_run, question, to_interrupt},
};
use crate::{
    AppendKind, ClaimRequest, ClaimedRun, CommitRequest, Cursor, Disposition, GateOrder, Level,
    NewRun, OpenedInterrupt, QuestionFilter,
};

const PARK: Disposition = Disposition::Park { wake_at_ms: None };
/// A time that no test lives to see.
pub(super) const FAR_MS: i64 = 4_000_000_000_000;

/// A question and the run that asks it, as the properties make them.
#[derive(Debug, Clone, Default)]
pub(super) struct Asked {
    pub(super) name: &'static str,
    pub(super) graph: &'static str,
    pub(super) tags: &'static [&'static str],
    pub(super) people: &'static [&'static str],
    pub(super) groups: &'static [&'static str],
    pub(super) deadline_ms: Option<i64>,
}

impl Asked {
    pub(super) const fn new(name: &'static str, graph: &'static str) -> Self {
        Self { name, graph, tags: &[], people: &[], groups: &[], deadline_ms: None }
    }

    pub(super) fn opened(&self) -> OpenedInterrupt {
        OpenedInterrupt {
            assignees: names(self.people),
            groups: names(self.groups),
            deadline_ms: self.deadline_ms,
            ..question(&format!("q-{}", self.name), None)
        }
    }

    fn is_shown(&self, filter: &QuestionFilter) -> bool {
        let names_somebody = filter.assignee.is_some() || !filter.groups.is_empty();
        let is_for_all = self.people.is_empty() && self.groups.is_empty();
        let person = filter.assignee.as_deref();
        let is_asked = self.people.iter().any(|name| Some(*name) == person)
            || self.groups.iter().any(|name| filter.groups.iter().any(|group| group == name));
        filter.graph.as_ref().is_none_or(|graph| graph.as_str() == self.graph)
            && filter.tag.as_ref().is_none_or(|tag| self.tags.contains(&tag.as_str()))
            && (!names_somebody || is_for_all || is_asked)
    }
}

/// Stores a run of the graph and parks it at the question.
pub(super) async fn ask(world: &World, asked: &Asked) -> ClaimedRun {
    let graph: GraphId = id(asked.graph);
    let new = NewRun { graph, tags: names(asked.tags), ..new_run(asked.name) };
    world.created(&new).await;
    let claim = ClaimRequest { lanes: vec![new.lane()], ..claim_request("w1", 1) };
    let claimed = world.claim(&claim).await.unwrap().runs.remove(0);
    let draft = world.draft(&claimed, 1, PARK);
    world.done(&CommitRequest { opened: vec![asked.opened()], ..draft }).await;
    claimed
}

/// The runs whose questions are shown, `limit` a page.
pub(super) async fn shown(world: &World, filter: &QuestionFilter, limit: usize) -> Vec<String> {
    let (mut rows, mut after) = (Vec::new(), None::<Cursor>);
    loop {
        let page = world.questions(filter, after.as_ref(), limit).await.unwrap();
        assert!(page.rows.len() <= limit);
        rows.extend(page.rows.iter().map(|row| row.head.run.to_string()));
        after = page.next;
        if after.is_none() {
            return rows;
        }
    }
}

pub(super) fn of_graph(graph: &str) -> QuestionFilter {
    QuestionFilter { graph: Some(id(graph)), ..QuestionFilter::default() }
}

pub(super) fn of_person(name: &str) -> QuestionFilter {
    QuestionFilter { assignee: Some(name.to_owned()), ..QuestionFilter::default() }
}

pub(super) fn of_groups(groups: &[&str]) -> QuestionFilter {
    QuestionFilter { groups: names(groups), ..QuestionFilter::default() }
}

pub(super) fn of_tag(tag: &str) -> QuestionFilter {
    QuestionFilter { tag: Some(tag.to_owned()), ..QuestionFilter::default() }
}

pub(super) async fn is_sound(world: &World) {
    let findings = world.check().await.unwrap();
    let bad: Vec<_> = findings.iter().filter(|found| found.level == Level::Bad).collect();
    assert!(bad.is_empty(), "{bad:?}");
}

/// Questions of two graphs, of people and groups and everybody, with and without tags and
/// deadlines; oldest first.
const MANY: [Asked; 8] = [
    Asked { deadline_ms: Some(FAR_MS + 3), ..Asked::new("r7", "mailer") },
    Asked { tags: &["team=a b", "kind=%20"], ..Asked::new("r3", "other") },
    Asked { people: &["ann lee"], deadline_ms: Some(FAR_MS + 1), ..Asked::new("r5", "mailer") },
    Asked { people: &["ann lee", "bob"], groups: &["ops"], ..Asked::new("r1", "mailer") },
    Asked { groups: &["ops", "law"], tags: &["team=a b"], ..Asked::new("r8", "other") },
    Asked { people: &["bob"], deadline_ms: Some(FAR_MS + 2), ..Asked::new("r2", "other") },
    Asked { people: &["bob", "bob"], tags: &["team=b"], ..Asked::new("r6", "mailer") },
    Asked { tags: &["team=b"], deadline_ms: Some(FAR_MS), ..Asked::new("r4", "mailer") },
];

fn filters() -> Vec<QuestionFilter> {
    let all = QuestionFilter::default;
    let tag = Some("team=a b".to_owned());
    vec![
        all(),
        of_graph("mailer"),
        of_graph("other"),
        of_graph("unknown"),
        of_person("ann lee"),
        of_person("bob"),
        of_person("nobody"),
        of_groups(&["ops"]),
        of_groups(&["law", "ops"]),
        QuestionFilter { groups: names(["law"]), ..of_person("ann lee") },
        of_tag("team=a b"),
        of_tag("team=b"),
        of_tag("kind=%20"),
        of_tag("kind= "),
        QuestionFilter { tag: tag.clone(), ..of_graph("other") },
        QuestionFilter { tag: tag.clone(), ..of_graph("mailer") },
        QuestionFilter { assignee: Some("bob".to_owned()), ..of_graph("mailer") },
        QuestionFilter { groups: names(["law"]), tag, graph: Some(id("other")), ..all() },
    ]
}

/// Each condition shows what it fits and nothing else, in both orders, however long the pages.
pub async fn each_condition_finds_its_questions(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let mut opened_ms = Vec::new();
    for asked in &MANY {
        ask(&world, asked).await;
        let run = QuestionFilter::of_run(&id(asked.name));
        opened_ms.push(world.questions(&run, None, 9).await.unwrap().rows[0].opened_at_ms);
        world.let_pass(1).await;
    }
    for (filter, order) in filters().into_iter().flat_map(|filter| {
        [GateOrder::Oldest, GateOrder::Deadline].map(|order| (filter.clone(), order))
    }) {
        for opened_before_ms in [None, Some(opened_ms[0]), Some(opened_ms[5])] {
            let filter = QuestionFilter { opened_before_ms, order, ..filter.clone() };
            let is_old =
                |n: usize| opened_before_ms.is_none_or(|before_ms| opened_ms[n] < before_ms);
            let fits =
                MANY.iter().enumerate().filter(|(n, asked)| is_old(*n) && asked.is_shown(&filter));
            let mut expected: Vec<&Asked> = fits.map(|(_, asked)| asked).collect();
            if order == GateOrder::Deadline {
                // A sort keeps the order of what is equal: those without a deadline by their age.
                expected.sort_by_key(|asked| asked.deadline_ms.unwrap_or(i64::MAX));
            }
            let expected = names(expected.iter().map(|asked| asked.name));
            for limit in [1, 3, 50] {
                assert_eq!(shown(&world, &filter, limit).await, expected, "{filter:?}, {limit}");
            }
        }
    }
    is_sound(&world).await;
}

/// Who asks for a person's questions also gets those that name nobody, in one order with them; what
/// names only others is not shown.
pub async fn people_find_what_is_asked_of_everybody(bench: &dyn Bench) {
    let world = World::new(bench).await;
    for (n, people) in [&[][..], &["ann"], &["bob"], &[], &["bob", "ann"], &[]].iter().enumerate() {
        let name = ["r5", "r1", "r3", "r2", "r0", "r4"][n];
        ask(&world, &Asked { people, ..Asked::new(name, "mailer") }).await;
        world.let_pass(1).await;
    }
    let of_ann = shown(&world, &of_person("ann"), 2).await;
    assert_eq!(of_ann, ["r5", "r1", "r2", "r0", "r4"]);
    assert_eq!(shown(&world, &of_person("cid"), 2).await, ["r5", "r2", "r4"]);
    assert_eq!(shown(&world, &of_groups(&["ann"]), 2).await, ["r5", "r2", "r4"], "no group");
}

/// The questions of one run are filtered and ordered like those of all.
pub async fn one_run_is_filtered_and_ordered(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let dated = |name: &str, deadline_ms, people: &[&str]| OpenedInterrupt {
        deadline_ms,
        assignees: names(people),
        ..question(name, None)
    };
    let opened = [
        dated("q1", None, &["ann"]),
        dated("q2", Some(FAR_MS + 1), &[]),
        dated("q3", Some(FAR_MS), &["bob"]),
        dated("q4", None, &[]),
    ];
    world.parked("r1", &opened).await;
    world.parked("r2", &[question("q9", None)]).await;
    let of_run = QuestionFilter::of_run(&id("r1"));
    let by_deadline = QuestionFilter { order: GateOrder::Deadline, ..of_run.clone() };
    let of_ann = QuestionFilter { assignee: Some("ann".to_owned()), ..by_deadline.clone() };
    let too_new = QuestionFilter { opened_before_ms: Some(1), ..of_run.clone() };
    for (filter, expected) in [
        (of_run, &["q1", "q2", "q3", "q4"][..]),
        (by_deadline, &["q3", "q2", "q1", "q4"]),
        (of_ann, &["q2", "q1", "q4"]),
        (too_new, &[]),
    ] {
        for limit in [1, 2, 9] {
            let (mut found, mut after) = (Vec::new(), None::<Cursor>);
            loop {
                let page = world.questions(&filter, after.as_ref(), limit).await.unwrap();
                found.extend(names(page.rows.iter().map(|row| &row.interrupt)));
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            assert_eq!(found, expected, "{filter:?}, {limit} a page");
        }
    }
}

/// Questions that open and close while a list is paged, also those at the cursor, make it neither
/// miss nor repeat one that stays.
pub async fn pages_stay_while_questions_move(bench: &dyn Bench) {
    const NAMES: [&str; 12] =
        ["r00", "r01", "r02", "r03", "r04", "r05", "r06", "r07", "r08", "r09", "r10", "r11"];
    const LATER: [&str; 6] = ["n0", "n1", "n2", "n3", "n4", "n5"];
    for (order, namespace) in [(GateOrder::Oldest, "oldest"), (GateOrder::Deadline, "deadline")] {
        let world = World::named(bench, namespace).await;
        for (n, name) in NAMES.into_iter().enumerate() {
            let deadline_ms = (n % 3 > 0).then_some(FAR_MS + (n as i64 * 5) % 7);
            let people: &[&str] = if n % 2 == 0 { &["ann"] } else { &[] };
            ask(&world, &Asked { deadline_ms, people, ..Asked::new(name, "mailer") }).await;
        }
        let filter = QuestionFilter { order, ..of_person("ann") };
        let (mut seen, mut after) = (Vec::new(), None::<Cursor>);
        let mut closed = BTreeSet::new();
        for round in 0_usize.. {
            let page = world.questions(&filter, after.as_ref(), 2).await.unwrap();
            seen.extend(names(page.rows.iter().map(|row| &row.head.run)));
            let at_cursor = page.rows.last().map(|row| row.head.run.to_string());
            after = page.next;
            if after.is_none() {
                break;
            }
            if let Some(name) = LATER.get(round) {
                let deadline_ms = round.is_multiple_of(2).then_some(FAR_MS);
                ask(&world, &Asked { deadline_ms, ..Asked::new(name, "mailer") }).await;
            }
            // One that was shown last, and one that was not shown yet.
            let unseen = NAMES
                .iter()
                .rev()
                .find(|name| !seen.contains(&(**name).to_owned()) && !closed.contains(**name));
            for name in at_cursor.into_iter().chain(unseen.map(|name| (*name).to_owned())) {
                let append = world.append_now(&id(&name)).await;
                let kind = AppendKind::Cancel { rollback: false };
                world.append(&append, &kind).await.unwrap();
                closed.insert(name);
            }
        }
        let unique: BTreeSet<&String> = seen.iter().collect();
        assert_eq!(unique.len(), seen.len(), "{order:?}: none twice: {seen:?}");
        let stayed = NAMES.into_iter().filter(|name| !closed.contains(*name));
        for name in stayed {
            assert!(unique.contains(&name.to_owned()), "{order:?}: {name} was missed: {seen:?}");
        }
    }
}

/// Many questions of one deadline are paged like any others, also behind one that has gone.
pub async fn equal_deadlines_are_paged(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let opened: Vec<OpenedInterrupt> = (0..40)
        .map(|n| OpenedInterrupt {
            deadline_ms: Some(FAR_MS),
            ..question(&format!("q{n:02}"), None)
        })
        .collect();
    let claimed = world.parked("r1", &opened).await;
    let filter = QuestionFilter { order: GateOrder::Deadline, ..QuestionFilter::default() };
    let page = world.questions(&filter, None, 15).await.unwrap();
    world.answer(&id("r1"), to_interrupt("q14"), "yes").await;
    let again = world.claim_next().await;
    let draft = world.draft(&again, 1, PARK);
    let (consumed, closed) = (vec!["iq14".to_owned()], vec![id("q14")]);
    world.done(&CommitRequest { consumed, closed, ..draft }).await;
    let rest = world.questions(&filter, page.next.as_ref(), 50).await.unwrap();
    let found = page.rows.iter().chain(&rest.rows).map(|row| &row.interrupt);
    assert_eq!(names(found), names(opened.iter().map(|opened| &opened.interrupt)));
    assert!(rest.next.is_none());
    assert_eq!(claimed.head.run, again.head.run);
}

/// A cursor of one order is refused by the other, and so is one that no list gave.
pub async fn cursor_goes_with_its_order(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let opened = [question("q1", None), question("q2", None)];
    world.parked("r1", &opened).await;
    let oldest = QuestionFilter::default();
    let by_deadline = QuestionFilter { order: GateOrder::Deadline, ..oldest.clone() };
    let cursor = world.questions(&oldest, None, 1).await.unwrap().next.unwrap();
    let error = world.questions(&by_deadline, Some(&cursor), 1).await.unwrap_err();
    assert_eq!(error.code(), Code::Cursor);
    let foreign = Cursor { at_ms: HOUR_MS, id: "?".to_owned() };
    let error = world.questions(&oldest, Some(&foreign), 1).await.unwrap_err();
    assert_eq!(error.code(), Code::Cursor);
}
