//! What changes the lists of open questions: every list follows its question.
#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a property fails by a panic")]

use holdpoint_graph::{End, ReasonCode, RunStatus};

use super::{
    Bench,
    questions::{Asked, FAR_MS, ask, is_sound, of_graph, of_groups, of_person, of_tag, shown},
    world::{World, id, question, to_interrupt},
};
use crate::{
    AppendKind, AppendReply, ClaimedRun, CommitRequest, Disposition, GateOrder, QuestionFilter,
};

/// All lists in which the question of [`one_in_every_list`] stands.
fn every_list() -> Vec<QuestionFilter> {
    let lists = [
        QuestionFilter::default(),
        of_graph("mailer"),
        of_person("ann"),
        of_groups(&["ops"]),
        of_tag("team=a"),
    ];
    let orders = [GateOrder::Oldest, GateOrder::Deadline];
    let ordered =
        |filter: QuestionFilter| orders.map(|order| QuestionFilter { order, ..filter.clone() });
    lists.into_iter().flat_map(ordered).collect()
}

const FULL: Asked = Asked {
    tags: &["team=a"],
    people: &["ann"],
    groups: &["ops"],
    deadline_ms: Some(FAR_MS),
    ..Asked::new("r1", "mailer")
};

async fn one_in_every_list(world: &World) -> ClaimedRun {
    let claimed = ask(world, &FULL).await;
    for filter in every_list() {
        assert_eq!(shown(world, &filter, 9).await, ["r1"], "{filter:?}");
    }
    claimed
}

async fn none_in_any_list(world: &World) {
    for filter in every_list() {
        assert!(shown(world, &filter, 9).await.is_empty(), "{filter:?}");
    }
    assert_eq!(world.stats().await.unwrap().open_questions, 0);
    is_sound(world).await;
}

/// An answer that waits leaves the question on its lists; the commit that takes it does not.
pub async fn closed_questions_leave_every_list(bench: &dyn Bench) {
    let world = World::new(bench).await;
    one_in_every_list(&world).await;
    world.answer(&id("r1"), to_interrupt("q-r1"), "yes").await;
    for filter in every_list() {
        assert_eq!(shown(&world, &filter, 9).await, ["r1"], "{filter:?}");
    }
    let claimed = world.claim_next().await;
    let draft = world.draft(&claimed, 1, Disposition::Continue);
    let (consumed, closed) = (vec!["iq-r1".to_owned()], vec![id("q-r1")]);
    world.done(&CommitRequest { consumed, closed, ..draft }).await;
    none_in_any_list(&world).await;
}

/// A question that is shown anew for other people, or with another deadline, changes its lists and
/// keeps its time.
pub async fn edited_questions_change_their_lists(bench: &dyn Bench) {
    let world = World::new(bench).await;
    ask(&world, &Asked::new("r0", "mailer")).await;
    world.let_pass(1).await;
    one_in_lists_with_another(&world).await;
    let anew = [
        (Asked { people: &["bob"], groups: &[], ..FULL }, "bob", true),
        (Asked { people: &["ann"], groups: &[], deadline_ms: None, ..FULL }, "ann", false),
        (Asked { people: &[], groups: &[], ..FULL }, "anybody", true),
    ];
    for (asked, who, is_dated) in anew {
        let append = world.append_now(&id("r1")).await;
        let kind = AppendKind::Edit { shown: vec![asked.opened()] };
        let said = world.append(&append, &kind).await.unwrap();
        assert!(matches!(said, AppendReply::Done { status: RunStatus::Parked, .. }), "{said:?}");
        assert_eq!(shown(&world, &of_person(who), 9).await, ["r0", "r1"], "{who}");
        let others: &[&str] = if who == "anybody" { &["r0", "r1"] } else { &["r0"] };
        assert_eq!(shown(&world, &of_person("cid"), 9).await, others, "{who}");
        assert_eq!(shown(&world, &of_groups(&["ops"]), 9).await, others, "{who}");
        let order = GateOrder::Deadline;
        let by_deadline = QuestionFilter { order, ..QuestionFilter::default() };
        let expected = if is_dated { ["r1", "r0"] } else { ["r0", "r1"] };
        assert_eq!(shown(&world, &by_deadline, 9).await, expected, "{who}");
        is_sound(&world).await;
    }
}

async fn one_in_lists_with_another(world: &World) {
    ask(world, &FULL).await;
    assert_eq!(shown(world, &of_person("ann"), 9).await, ["r0", "r1"]);
    assert_eq!(shown(world, &of_tag("team=a"), 9).await, ["r1"]);
}

/// A reminder asks more people, who find the question from then on.
pub async fn reminded_people_find_the_question(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("r1").await;
    let asked = Asked { people: &["ann"], ..Asked::new("r1", "mailer") };
    let draft = world.draft(&claimed, 1, Disposition::Park { wake_at_ms: Some(1) });
    world.done(&CommitRequest { opened: vec![asked.opened()], ..draft }).await;
    assert!(shown(&world, &of_person("boss"), 9).await.is_empty());
    let claimed = world.claim_next().await;
    let reminded = Asked { people: &["ann", "boss"], ..asked };
    let draft = world.draft(&claimed, 1, Disposition::Park { wake_at_ms: Some(FAR_MS) });
    world.done(&CommitRequest { opened: vec![reminded.opened()], ..draft }).await;
    for who in ["ann", "boss"] {
        assert_eq!(shown(&world, &of_person(who), 9).await, ["r1"], "{who}");
    }
    assert_eq!(world.stats().await.unwrap().open_questions, 1);
    is_sound(&world).await;
}

/// However a run ends, no list shows its questions any more.
pub async fn ended_runs_leave_every_list(bench: &dyn Bench) {
    for end in ["cancel", "fail", "close"] {
        let world = World::named(bench, end).await;
        one_in_every_list(&world).await;
        match end {
            "cancel" => {
                let append = world.append_now(&id("r1")).await;
                let kind = AppendKind::Cancel { rollback: false };
                world.append(&append, &kind).await.unwrap();
            }
            "fail" => {
                world.answer(&id("r1"), to_interrupt("q-r1"), "yes").await;
                let claimed = world.claim_next().await;
                let failed = End::Failed(ReasonCode::NodeError);
                let draft = world.draft(&claimed, 1, Disposition::Finish { end: failed });
                let opened = vec![question("q-late", None)];
                world.done(&CommitRequest { opened, ..draft }).await;
            }
            _ => {
                world.answer(&id("r1"), to_interrupt("q-r1"), "yes").await;
                let claimed = world.claim_next().await;
                // A question that opens and closes in one commit was never on a list.
                let draft = world.draft(&claimed, 1, Disposition::Continue);
                let opened = vec![question("q-short", None)];
                let closed = vec![id("q-short"), id("q-r1"), id("q-unknown")];
                world.done(&CommitRequest { opened, closed, ..draft }).await;
            }
        }
        none_in_any_list(&world).await;
    }
}
