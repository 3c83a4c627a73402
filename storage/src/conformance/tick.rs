//! Ticks and hand-backs: lost workers, timers, and runs that must end without an owner.
#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a property fails by a panic")]

use holdpoint_graph::{End, Life, ReasonCode, RunId, RunStatus};

use super::{
    Bench,
    world::{
        HOUR_MS, World, claim_request, id, names, new_run, question, session_run, tick_request,
    },
};
use crate::{
    AppendKind, CancelWish, ClaimRequest, ClaimedRun, CommitRequest, Disposition, IfBusy, NewRun,
    QuestionFilter, TickRequest, Ticked, When,
};

/// A lease that ended is taken for lost: the run is claimable again and remembers the loss until
/// a record holds it. The very first tick of a store holds nothing back.
pub async fn ended_lease_is_reaped(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = claim_for(&world, "r1", 50).await;
    world.let_pass(50).await;
    let ticked = world.tick(&TickRequest { hold_after_ms: 1, ..tick_request() }).await.unwrap();
    assert_eq!((names(&ticked.reaped), ticked.held_until_ms), (names(["r1"]), None));

    let head = world.head_of(&id("r1")).await;
    assert_eq!((head.status(), head.lost_in_row, head.lost_in_life), (RunStatus::Queued, 1, 1));
    assert_eq!(head.losses.len(), 1);
    let loss = &head.losses[0];
    assert_eq!((loss.worker.as_str(), loss.epoch), ("w1", claimed.lease.pair.epoch));
    assert_eq!(loss.claimed_at_ms, claimed.head.updated_at_ms);
    assert_eq!((loss.lost_at_ms, loss.evidence.as_str()), (ticked.now_ms, "lease expired"));

    let again = world.claim_next().await;
    assert_eq!(again.head.losses, head.losses);
    world.done(&world.draft(&again, 1, Disposition::Continue)).await;
    assert!(world.head_of(&id("r1")).await.losses.is_empty());
}

/// Within its grace, an ended lease is not taken for lost; a living one never is.
pub async fn grace_is_kept(bench: &dyn Bench) {
    let world = World::new(bench).await;
    claim_for(&world, "short", 50).await;
    claim_for(&world, "long", HOUR_MS).await;
    world.let_pass(50).await;
    let ticked = world.tick(&TickRequest { grace_ms: HOUR_MS, ..tick_request() }).await.unwrap();
    assert!(ticked.reaped.is_empty());
    assert_eq!(world.status_of(&id("short")).await, RunStatus::Running);
    let ticked = world.tick_until(|ticked| !ticked.reaped.is_empty()).await;
    assert_eq!(names(ticked.reaped), ["short"]);
    assert_eq!(world.status_of(&id("long")).await, RunStatus::Running);
}

/// Each further loss in a row waits longer, as the caller says; the last wait goes on for ever.
pub async fn losses_wait_longer(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let run = world.created(&new_run("r1")).await;
    for (round, delay_ms) in [0, HOUR_MS, 2 * HOUR_MS, 2 * HOUR_MS].into_iter().enumerate() {
        world.claim_next().await;
        let lost = world.lost(&id("w1"), "killed", &[0, HOUR_MS, 2 * HOUR_MS]).await.unwrap();
        assert_eq!(lost, std::slice::from_ref(&run));
        let head = world.head_of(&run).await;
        let lost_at_ms = head.losses.last().unwrap().lost_at_ms;
        assert_eq!(head.losses.len(), round + 1);
        if delay_ms == 0 {
            assert_eq!(head.life, Life::Queued);
        } else {
            assert_eq!(head.life, Life::Scheduled { until_ms: lost_at_ms + delay_ms });
            world.start_now(&run).await.unwrap();
        }
    }
    let head = world.head_of(&run).await;
    assert_eq!((head.claims, head.lost_in_row, head.lost_in_life), (4, 4, 4));
}

/// A worker's hand-back gives all its runs, and only its runs, at once, and takes it off the list.
pub async fn lost_worker_hands_back(bench: &dyn Bench) {
    let world = World::new(bench).await;
    for name in ["a", "b", "c"] {
        world.created(&new_run(name)).await;
    }
    world.claim(&claim_request("w1", 1)).await.unwrap();
    world.claim(&claim_request("w2", 1)).await.unwrap();
    world.claim(&claim_request("w1", 1)).await.unwrap();
    world.beat(&super::upkeep::worker("w1")).await.unwrap();

    let mut lost = names(world.lost(&id("w1"), "exit code 9", &[0]).await.unwrap());
    lost.sort();
    assert_eq!(lost, ["a", "c"]);
    let head = world.head_of(&id("a")).await;
    assert_eq!(head.losses[0].evidence, "exit code 9");
    assert_eq!(world.status_of(&id("b")).await, RunStatus::Running);
    assert!(world.workers().await.unwrap().is_empty());
    assert!(world.lost(&id("w1"), "again", &[0]).await.unwrap().is_empty());
    assert_eq!(world.head_of(&id("a")).await, head);
}

/// A tick in doubt takes nothing for lost until the longest lease could have been renewed.
pub async fn doubt_holds_the_reaper(bench: &dyn Bench) {
    let world = World::new(bench).await;
    claim_for(&world, "r1", 300).await;
    world.let_pass(300).await;
    let ticked = world.tick(&TickRequest { doubt: true, ..tick_request() }).await.unwrap();
    assert!(ticked.reaped.is_empty());
    assert_eq!(ticked.held_until_ms, Some(ticked.now_ms + 300));
    assert_eq!(world.status_of(&id("r1")).await, RunStatus::Running);
    let later = world.tick_until(|ticked| !ticked.reaped.is_empty()).await;
    assert!(later.now_ms >= ticked.now_ms + 300, "not before the hold was over");
    assert_eq!(later.held_until_ms, None);
}

/// A gap between two ticks is a stall of the store: it holds the reaper too.
pub async fn gap_holds_the_reaper(bench: &dyn Bench) {
    let world = World::new(bench).await;
    claim_for(&world, "r1", 250).await;
    world.tick_once().await;
    world.let_pass(300).await;
    let ticked = world.tick(&TickRequest { hold_after_ms: 200, ..tick_request() }).await.unwrap();
    assert!(ticked.reaped.is_empty(), "the lease ended during the gap");
    assert_eq!(ticked.held_until_ms, Some(ticked.now_ms + 250));
    world.tick_until(|ticked| !ticked.reaped.is_empty()).await;
}

/// Due timers of scheduled and of parked runs are fired, others are not.
pub async fn tick_fires_timers(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("parked").await;
    let wake_at_ms = Some(world.now_ms().await.unwrap() + 100);
    world.done(&world.draft(&claimed, 1, Disposition::Park { wake_at_ms })).await;
    world.created(&NewRun { start: When::In(100), ..new_run("scheduled") }).await;
    world.created(&NewRun { start: When::In(HOUR_MS), ..new_run("later") }).await;
    world.let_pass(100).await;
    let ticked = world.tick_once().await;
    assert_eq!(ticked.fired, 2);
    assert_eq!(world.status_of(&id("parked")).await, RunStatus::Queued);
    assert_eq!(world.status_of(&id("scheduled")).await, RunStatus::Queued);
    assert_eq!(world.status_of(&id("later")).await, RunStatus::Scheduled);
}

/// A run that did not start in time is claimed for whoever ticks, like by any claim.
pub async fn expired_run_is_closed(bench: &dyn Bench) {
    let world = World::new(bench).await;
    world.created(&NewRun { expires: Some(When::In(0)), ..new_run("r1") }).await;
    world.created(&NewRun { expires: Some(When::In(HOUR_MS)), ..new_run("r2") }).await;
    let request = tick_request();
    let ticked = world.tick(&request).await.unwrap();
    assert_eq!(closing(&ticked), ["r1"]);
    let claimed = &ticked.closing[0];
    assert_eq!(claimed.lease.worker, request.worker);
    assert_eq!(claimed.lease.pair.nonce, request.nonce);
    assert_eq!(claimed.payload, new_run("r1").payload);
    assert_eq!(claimed.head, world.head_of(&id("r1")).await);
    assert_eq!((claimed.head.status(), claimed.head.claims), (RunStatus::Running, 1));
    assert_eq!((claimed.head.lost_in_row, claimed.head.lost_in_life), (1, 1));
    assert!(claimed.head.epoch > 0);
    world.end(claimed, End::Failed(ReasonCode::Expired)).await;
    assert_eq!(world.claimed_ids(&claim_request("w1", 5)).await, ["r2"]);
}

/// A time to start by does not bind a run that has started.
pub async fn started_run_does_not_expire(bench: &dyn Bench) {
    let world = World::new(bench).await;
    world.created(&NewRun { expires: Some(When::In(0)), ..new_run("r1") }).await;
    let claimed = world.claim_next().await;
    assert!(world.release(&claimed.lease).await.unwrap());
    assert!(world.tick_once().await.closing.is_empty());
}

/// A run past its deadline is closed wherever it waits: parked, scheduled, or in a paused queue.
pub async fn overdue_run_is_closed(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let overdue = |name: &str| NewRun { deadline: Some(When::In(0)), ..new_run(name) };
    world.created(&overdue("parked")).await;
    let claimed = world.claim_next().await;
    let draft = world.draft(&claimed, 1, Disposition::Park { wake_at_ms: None });
    world.done(&CommitRequest { opened: vec![question("q1", None)], ..draft }).await;
    world.created(&NewRun { start: When::In(HOUR_MS), ..overdue("scheduled") }).await;
    world.created(&overdue("running")).await;
    world.claim_next().await;
    world.created(&NewRun { queue: id("paused"), ..overdue("queued") }).await;
    world.pause(&id("paused"), true).await.unwrap();

    let ticked = world.tick_once().await;
    assert_eq!(closing(&ticked), ["parked", "queued", "scheduled"], "not the one with an owner");
    for claimed in &ticked.closing {
        world.end(claimed, End::Failed(ReasonCode::Expired)).await;
        let head = world.head_of(&claimed.head.run).await;
        assert_eq!((head.status(), head.due_at_ms()), (RunStatus::Failed, None));
    }
    assert!(world.questions(&QuestionFilter::default(), None, 9).await.unwrap().rows.is_empty());
}

/// A session's run that a newer one cancels and nobody has is closed; then the newer one's turn
/// comes.
pub async fn unwanted_run_is_closed(bench: &dyn Bench) {
    let world = World::new(bench).await;
    world.created(&session_run("r1", IfBusy::Enqueue)).await;
    let claimed = world.claim_next().await;
    let draft = world.draft(&claimed, 1, Disposition::Park { wake_at_ms: None });
    world.done(&CommitRequest { opened: vec![question("q1", None)], ..draft }).await;
    world.created(&session_run("r2", IfBusy::Interrupt)).await;
    assert_eq!(world.status_of(&id("r1")).await, RunStatus::Parked);

    let ticked = world.tick_once().await;
    assert_eq!(closing(&ticked), ["r1"]);
    let claimed = &ticked.closing[0];
    assert_eq!(claimed.head.cancel, Some(CancelWish::Interrupted));
    assert_eq!(claimed.journal.len(), 1);
    world.end(claimed, End::Cancelled).await;
    assert_eq!(world.claim_next().await.head.run.as_str(), "r2");
}

/// A run that got its wish while it ran, and was handed back, is closed too.
pub async fn released_unwanted_run_is_closed(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let claimed = world.running("r1").await;
    let cancel = AppendKind::Cancel { rollback: false };
    world.append(&world.append_on(&claimed.head), &cancel).await.unwrap();
    assert!(world.release(&claimed.lease).await.unwrap());
    let ticked = world.tick_once().await;
    assert_eq!(closing(&ticked), ["r1"]);
    world.end(&ticked.closing[0], End::Cancelled).await;
}

/// A run of a session that waits behind another is closed in its place; the order goes on.
pub async fn waiting_session_run_is_closed(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let active = world.created(&session_run("r1", IfBusy::Enqueue)).await;
    let expired = NewRun { expires: Some(When::In(0)), ..session_run("r2", IfBusy::Enqueue) };
    world.created(&expired).await;
    world.created(&session_run("r3", IfBusy::Enqueue)).await;
    let ticked = world.tick_once().await;
    assert_eq!(closing(&ticked), ["r2"]);
    world.end(&ticked.closing[0], End::Failed(ReasonCode::Expired)).await;
    let session = world.session(&id("s1")).await.unwrap().unwrap();
    assert_eq!((session.active, names(session.waiting)), (Some(active), names(["r3"])));
    assert_eq!(world.claim_next().await.head.run.as_str(), "r1");
}

/// The store's tick does at most so much of each kind at once, and the rest at the next.
pub async fn tick_keeps_its_limit(bench: &dyn Bench) {
    let world = World::new(bench).await;
    for number in 0..5 {
        let expired = new_run(&format!("r{number}"));
        world.created(&NewRun { expires: Some(When::In(0)), ..expired }).await;
    }
    let mut closed: Vec<RunId> = Vec::new();
    while closed.len() < 5 {
        let ticked = world.tick(&TickRequest { max: 2, ..tick_request() }).await.unwrap();
        assert!(ticked.closing.len() <= 2);
        closed.extend(ticked.closing.into_iter().map(|claimed| claimed.head.run));
        super::world::look_again().await;
    }
    closed.sort();
    assert_eq!(names(closed), ["r0", "r1", "r2", "r3", "r4"]);
}

/// Ticks of several workers at the same time close each run once.
pub async fn ticks_do_not_overlap(bench: &dyn Bench) {
    let world = World::new(bench).await;
    for number in 0..6 {
        let expired = new_run(&format!("r{number}"));
        world.created(&NewRun { expires: Some(When::In(0)), ..expired }).await;
    }
    let mut closed: Vec<RunId> = Vec::new();
    while closed.len() < 6 {
        let tick = |number: u32| {
            let store = world.store.clone();
            let worker = id(&format!("w{number}"));
            let request = TickRequest { worker, max: 2, ..tick_request() };
            tokio::spawn(async move { store.tick(&request).await.unwrap().closing })
        };
        for ticking in (0..6).map(tick).collect::<Vec<_>>() {
            closed.extend(ticking.await.unwrap().into_iter().map(|claimed| claimed.head.run));
        }
        super::world::look_again().await;
    }
    closed.sort();
    assert_eq!(names(closed), ["r0", "r1", "r2", "r3", "r4", "r5"]);
}

async fn claim_for(world: &World, name: &str, lease_ms: i64) -> ClaimedRun {
    world.created(&new_run(name)).await;
    let request = ClaimRequest { lease_ms, ..claim_request("w1", 1) };
    let mut runs = world.claim(&request).await.unwrap().runs;
    assert_eq!(runs.len(), 1);
    runs.remove(0)
}

fn closing(ticked: &Ticked) -> Vec<String> {
    let mut runs = names(ticked.closing.iter().map(|claimed| &claimed.head.run));
    runs.sort();
    runs
}
