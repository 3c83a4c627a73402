//! Lists and counts: paging that neither misses nor doubles, filters, questions, sessions.
#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a property fails by a panic")]

use std::collections::BTreeSet;

use holdpoint_graph::{End, ReasonCode, RunId, RunStatus};

use super::{
    Bench,
    world::{
        HOUR_MS, World, id, lane, names, new_run, question, session_run, structure, to_interrupt,
    },
};
use crate::{
    CommitRequest, Cursor, Disposition, IfBusy, Lane, NewRun, OpenQuestion, QuestionFilter,
    RunFilter, RunHead, When,
};

/// Runs are listed newest first, and every filter shows just what it accepts.
pub async fn filters_show_what_they_accept(bench: &dyn Bench) {
    let world = World::new(bench).await;
    world.ended("completed", End::Completed).await;
    world.ended("failed", End::Failed(ReasonCode::StepLimit)).await;
    world.parked("parked", &[question("q1", None)]).await;
    world.created(&NewRun { start: When::In(HOUR_MS), ..new_run("scheduled") }).await;
    let tags = vec!["team=a".to_owned(), "kind=x".to_owned()];
    world.created(&NewRun { tags, queue: id("other"), ..new_run("tagged") }).await;
    world.created(&NewRun { graph: id("other"), ..session_run("session", IfBusy::Enqueue) }).await;

    let all = list(&world, &RunFilter::default(), 50).await;
    let places: Vec<_> = all.iter().map(|head| (head.created_at_ms, head.run.clone())).collect();
    assert!(places.is_sorted_by(|a, b| a > b), "newest first: {places:?}");
    assert_eq!(all.len(), 6);
    let none = RunFilter::default();
    let tag = |tags: &[&str]| RunFilter { tags: names(tags), ..RunFilter::default() };
    let filters = [
        RunFilter { statuses: vec![RunStatus::Parked], ..none.clone() },
        RunFilter { statuses: vec![RunStatus::Failed, RunStatus::Scheduled], ..none.clone() },
        RunFilter { statuses: RunStatus::ALL.to_vec(), ..none.clone() },
        RunFilter { reason: Some(ReasonCode::StepLimit), ..none.clone() },
        RunFilter { reason: Some(ReasonCode::CrashLoop), ..none.clone() },
        RunFilter { graph: Some(id("other")), ..none.clone() },
        RunFilter { session: Some(id("s1")), ..none.clone() },
        RunFilter { session: Some(id("unknown")), ..none.clone() },
        RunFilter { queue: Some(id("other")), ..none.clone() },
        RunFilter { queue: Some(id("default")), statuses: vec![RunStatus::Queued], ..none },
        tag(&["team=a"]),
        tag(&["team=a", "kind=x"]),
        tag(&["team=a", "kind=y"]),
    ];
    for filter in filters {
        let expected = all.iter().filter(|head| filter.accepts(head)).map(|head| &head.run);
        let shown = list(&world, &filter, 50).await;
        assert_eq!(names(shown.iter().map(|head| &head.run)), names(expected), "{filter:?}");
        assert_eq!(list(&world, &filter, 1).await, shown, "page by page: {filter:?}");
    }
}

/// Runs that move, come and end while a list is paged are neither missed nor shown twice.
pub async fn paging_survives_moves(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let items: Vec<NewRun> = (0..23).map(|n| new_run(&format!("r{n}"))).collect();
    for chunk in items.chunks(5) {
        world.enqueue(chunk, false).await.unwrap();
        world.let_pass(1).await;
    }
    let (mut seen, mut after, mut round): (Vec<RunId>, Option<Cursor>, u32) = (vec![], None, 0);
    loop {
        let filter = RunFilter::default();
        let page = world.runs(&filter, after.as_ref(), 4).await.unwrap();
        assert!(page.rows.len() <= 4);
        seen.extend(page.rows.into_iter().map(|head| head.run));
        after = page.next;
        if after.is_none() {
            break;
        }
        round += 1;
        world.created(&NewRun { queue: id("other"), ..new_run(&format!("new{round}")) }).await;
        let claimed = world.claim_next().await;
        if round.is_multiple_of(2) {
            world.end(&claimed, End::Completed).await;
        }
    }
    let unique: BTreeSet<_> = seen.iter().cloned().collect();
    assert_eq!(unique.len(), seen.len(), "no run twice: {seen:?}");
    assert!(items.iter().all(|item| unique.contains(&item.run)), "no run missed: {seen:?}");
}

/// Open questions are listed oldest first, of one run or of all, page by page.
pub async fn questions_are_paged(bench: &dyn Bench) {
    let world = World::new(bench).await;
    for name in ["r1", "r2", "r3"] {
        let opened = [question(&format!("{name}-b"), None), question(&format!("{name}-a"), None)];
        world.parked(name, &opened).await;
        world.let_pass(1).await;
    }
    let expected = ["r1-a", "r1-b", "r2-a", "r2-b", "r3-a", "r3-b"];
    for limit in [1, 2, 5, 50] {
        let rows = questions(&world, None, limit).await;
        assert_eq!(names(rows.iter().map(|row| &row.interrupt)), expected, "{limit} a page");
        assert!(rows.iter().all(|row| row.interrupt.as_str().starts_with(row.head.run.as_str())));
    }
    let rows = questions(&world, Some(&id("r2")), 1).await;
    assert_eq!(names(rows.iter().map(|row| &row.interrupt)), ["r2-a", "r2-b"]);
    assert!(questions(&world, Some(&id("unknown")), 9).await.is_empty());

    world.answer(&id("r2"), to_interrupt("r2-a"), "yes").await;
    assert_eq!(questions(&world, None, 9).await.len(), 6, "open until the run takes the answer");
    let claimed = world.claim_next().await;
    let draft = world.draft(&claimed, 1, Disposition::Continue);
    let (consumed, closed) = (vec!["ir2-a".to_owned()], vec![id("r2-a")]);
    world.done(&CommitRequest { consumed, closed, ..draft }).await;
    let rows = questions(&world, None, 9).await;
    assert_eq!(names(rows.iter().map(|row| &row.interrupt)).len(), 5);
}

/// The same question id in two runs is two questions.
pub async fn question_ids_belong_to_their_run(bench: &dyn Bench) {
    let world = World::new(bench).await;
    for name in ["r1", "r2", "r3"] {
        world.parked(name, &[question("same", None)]).await;
    }
    for limit in [1, 2, 9] {
        let rows = questions(&world, None, limit).await;
        let mut runs = names(rows.iter().map(|row| &row.head.run));
        runs.sort();
        assert_eq!(runs, ["r1", "r2", "r3"], "{limit} a page");
    }
    world.answer(&id("r2"), to_interrupt("same"), "yes").await;
    assert_eq!(world.status_of(&id("r1")).await, RunStatus::Parked);
    assert!(world.inbox(&id("r1")).await.unwrap().is_empty());
}

/// Sessions are listed by their id.
pub async fn sessions_are_paged(bench: &dyn Bench) {
    let world = World::new(bench).await;
    for number in [3, 1, 5, 2, 4] {
        let session = Some(id(&format!("s{number}")));
        world.created(&NewRun { session, ..new_run(&format!("r{number}")) }).await;
    }
    for limit in [1, 2, 9] {
        let (mut found, mut after) = (Vec::new(), None);
        loop {
            let page = world.sessions(after.as_ref(), limit).await.unwrap();
            assert!(page.rows.len() <= limit);
            found.extend(page.rows);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!(names(found.iter().map(|row| &row.session)), ["s1", "s2", "s3", "s4", "s5"]);
        let active = names(found.iter().filter_map(|row| row.active.as_ref()));
        assert_eq!(active, ["r1", "r2", "r3", "r4", "r5"]);
    }
}

/// Each run is counted once, in its state; lanes count the runs that could be claimed now.
pub async fn stats_count_everything_once(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let stats = world.stats().await.unwrap();
    let states: Vec<RunStatus> = stats.counts.iter().map(|(status, _)| *status).collect();
    assert_eq!(states, RunStatus::ALL);
    assert!(stats.counts.iter().all(|(_, count)| *count == 0) && stats.lanes.is_empty());

    world.ended("completed", End::Completed).await;
    world.ended("failed", End::Failed(ReasonCode::NodeError)).await;
    world.ended("cancelled", End::Cancelled).await;
    world.parked("parked", &[question("q1", None), question("q2", None)]).await;
    world.running("running").await;
    world.created(&NewRun { start: When::In(HOUR_MS), ..new_run("scheduled") }).await;
    let oldest = world.created(&new_run("queued")).await;
    world.created(&session_run("s-head", IfBusy::Enqueue)).await;
    world.created(&session_run("s-waiting", IfBusy::Enqueue)).await;
    world.created(&NewRun { fingerprint: Some(structure("v1")), ..new_run("pinned") }).await;

    let stats = world.stats().await.unwrap();
    let counts: Vec<u64> = stats.counts.iter().map(|(_, count)| *count).collect();
    assert_eq!(counts, [1, 4, 1, 1, 1, 1, 1]);
    assert_eq!(stats.open_questions, 2);
    let mut lanes: Vec<_> = stats.lanes.iter().map(|of| (of.lane.clone(), of.queued)).collect();
    lanes.sort();
    let pinned = Lane { fingerprint: Some(structure("v1")), ..lane() };
    assert_eq!(lanes, [(lane(), 2), (pinned, 1)]);
    let of_lane = stats.lanes.iter().find(|of| of.lane == lane()).unwrap();
    let created_ms = world.head_of(&oldest).await.created_at_ms;
    assert_eq!(of_lane.oldest_created_ms, Some(created_ms));
}

/// The store's time does not go back, and the store can say what it is.
pub async fn time_goes_on(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let mut last_ms = world.now_ms().await.unwrap();
    assert!(last_ms > 1_600_000_000_000, "ms since 1970");
    for _ in 0..20 {
        let now_ms = world.now_ms().await.unwrap();
        assert!(now_ms >= last_ms);
        last_ms = now_ms;
    }
    assert!(!world.describe().is_empty());
}

/// All rows of a filter, `limit` a page.
async fn list(world: &World, filter: &RunFilter, limit: usize) -> Vec<RunHead> {
    let (mut rows, mut after) = (Vec::new(), None);
    loop {
        let page = world.runs(filter, after.as_ref(), limit).await.unwrap();
        assert!(page.rows.len() <= limit);
        rows.extend(page.rows);
        after = page.next;
        if after.is_none() {
            return rows;
        }
    }
}

/// All open questions, `limit` a page.
async fn questions(world: &World, run: Option<&RunId>, limit: usize) -> Vec<OpenQuestion> {
    let (mut rows, mut after) = (Vec::new(), None);
    let filter = QuestionFilter { run: run.cloned(), ..QuestionFilter::default() };
    loop {
        let page = world.questions(&filter, after.as_ref(), limit).await.unwrap();
        assert!(page.rows.len() <= limit);
        rows.extend(page.rows);
        after = page.next;
        if after.is_none() {
            return rows;
        }
    }
}
