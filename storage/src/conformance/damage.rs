//! Damage: a run that cannot be read is set aside and stops no other, and damage to its parts is
//! told to its owner, who can end it.
#![expect(clippy::unwrap_used, clippy::missing_panics_doc, reason = "a property fails by a panic")]

use holdpoint_graph::{Code, End, ReasonCode, RunId, RunStatus};

use super::{
    Bench, Part,
    world::{
        HOUR_MS, World, claim_request, id, look_again, names, new_run, question, session_run,
        tick_request,
    },
};
use crate::{
    ClaimedRun, CommitRequest, Disposition, IfBusy, Level, NewRun, QuestionFilter, Retention,
    RunFilter, When,
};

const AT_ONCE: Retention = Retention { done_ms: 0, failed_ms: 0, key_ms: 0 };

/// The world of one way to break a head.
struct Broken<'b> {
    bench: &'b dyn Bench,
    world: World,
    way: &'static str,
}

impl Broken<'_> {
    async fn break_head(&self, run: &RunId) {
        self.bench.break_head(self.world.namespace(), run, self.way).await;
    }

    /// The run is out of the way, and whoever asks for it hears why.
    async fn is_aside(&self, run: &RunId) {
        let error = self.world.head(run).await.unwrap_err();
        assert_eq!(error.code(), Code::StateCorrupt, "{}: {error}", self.way);
        let findings = self.world.check().await.unwrap();
        let bad: Vec<_> = findings.iter().filter(|found| found.level == Level::Bad).collect();
        assert!(bad.is_empty(), "{}: {bad:?}", self.way);
        let named = |found: &&crate::Finding| found.text.contains(run.as_str());
        assert!(findings.iter().any(|found| named(&found)), "{}: {findings:?}", self.way);
    }
}

/// Shows a property for each way in which a head can be broken.
async fn each_way(bench: &dyn Bench, property: impl AsyncFn(&Broken<'_>)) {
    for (n, way) in bench.head_breaks().iter().enumerate() {
        let world = World::named(bench, &format!("damage-{n}")).await;
        property(&Broken { bench, world, way }).await;
    }
}

/// Damaged runs at the head of a lane do not hide the ones behind them, and count no more.
pub async fn damaged_head_stops_no_claim(bench: &dyn Bench) {
    each_way(bench, async |broken| {
        let world = &broken.world;
        for number in 0..40 {
            let run = world.created(&new_run(&format!("bad{number}"))).await;
            broken.break_head(&run).await;
        }
        let good = world.created(&new_run("good")).await;
        let mut claimed = Vec::new();
        for _ in 0..50 {
            claimed.extend(world.claim_up_to(1).await);
        }
        assert_eq!(claimed.len(), 1, "{}", broken.way);
        assert_eq!(claimed[0].head.run, good);
        assert_eq!(queued(world).await, 0, "{}", broken.way);
        broken.is_aside(&id("bad0")).await;
    })
    .await;
}

async fn queued(world: &World) -> u64 {
    let stats = world.stats().await.unwrap();
    let count = |status| stats.counts.iter().find(|(of, _)| *of == status).map(|(_, n)| *n);
    count(RunStatus::Queued).unwrap() + count(RunStatus::Scheduled).unwrap()
}

/// A tick reaps, fires and closes what is sound, beside what is not.
pub async fn damaged_head_stops_no_tick(bench: &dyn Bench) {
    each_way(bench, async |broken| {
        let world = &broken.world;
        for name in ["bad", "good"] {
            world.created(&new_run(&format!("{name}-held"))).await;
            let claim = crate::ClaimRequest { lease_ms: 1, ..claim_request("w1", 1) };
            assert_eq!(world.claim(&claim).await.unwrap().runs.len(), 1);
        }
        for name in ["bad", "good"] {
            let due = NewRun { start: When::In(1), ..new_run(&format!("{name}-due")) };
            world.created(&due).await;
            let over = NewRun { expires: Some(When::In(1)), ..new_run(&format!("{name}-over")) };
            world.created(&NewRun { graph: id("other"), ..over }).await;
        }
        for name in ["bad-held", "bad-due", "bad-over"] {
            broken.break_head(&id(name)).await;
        }
        let (mut reaped, mut closing, mut fired) = (Vec::new(), Vec::new(), 0);
        let has = |list: &[String], name: &str| list.iter().any(|run| run == name);
        let start_ms = world.now_ms().await.unwrap();
        while !has(&reaped, "good-held") || !has(&closing, "good-over") || fired == 0 {
            let ticked = world.tick(&tick_request()).await.unwrap();
            assert!(ticked.now_ms < start_ms + 20_000, "{}: {reaped:?} {closing:?}", broken.way);
            reaped.extend(names(&ticked.reaped));
            fired += ticked.fired;
            closing.extend(ticked.closing.iter().map(|run| run.head.run.to_string()));
            look_again().await;
        }
        assert!(!closing.contains(&"bad-over".to_owned()), "{}", broken.way);
        assert_eq!(world.status_of(&id("good-due")).await, RunStatus::Queued, "{}", broken.way);
    })
    .await;
}

/// A lost worker's sound runs come back.
pub async fn damaged_head_stops_no_loss(bench: &dyn Bench) {
    each_way(bench, async |broken| {
        let world = &broken.world;
        for name in ["r1", "r2", "r3"] {
            world.created(&new_run(name)).await;
        }
        assert_eq!(world.claim_up_to(3).await.len(), 3);
        broken.break_head(&id("r2")).await;
        let mut lost = names(world.lost(&id("w1"), "gone", &[0]).await.unwrap());
        lost.sort();
        lost.retain(|run| run != "r2");
        assert_eq!(lost, ["r1", "r3"], "{}", broken.way);
        assert_eq!(world.status_of(&id("r1")).await, RunStatus::Queued);
    })
    .await;
}

/// Pruning goes on behind a damaged run, which it keeps.
pub async fn damaged_head_stops_no_prune(bench: &dyn Bench) {
    each_way(bench, async |broken| {
        let world = &broken.world;
        for name in ["r1", "r2", "r3"] {
            world.ended(name, End::Completed).await;
        }
        broken.break_head(&id("r2")).await;
        world.prune(AT_ONCE, 100).await.unwrap();
        for name in ["r1", "r3"] {
            assert!(world.head(&id(name)).await.unwrap().is_none(), "{}: {name}", broken.way);
        }
    })
    .await;
}

/// A damaged run leaves its session's order, wherever it stood in it, when it can be told which.
pub async fn damaged_head_lets_its_session_go_on(bench: &dyn Bench) {
    each_way(bench, async |broken| {
        if bench.forgets_the_session(broken.way) {
            return;
        }
        let world = &broken.world;
        for name in ["r1", "r2", "r3", "r4"] {
            world.created(&session_run(name, IfBusy::Enqueue)).await;
        }
        broken.break_head(&id("r1")).await;
        broken.break_head(&id("r3")).await;
        let mut claimed = world.claim_up_to(1).await;
        claimed.extend(world.claim_up_to(1).await);
        assert_eq!(claimed.len(), 1, "{}", broken.way);
        assert_eq!(claimed[0].head.run, id("r2"), "{}", broken.way);
        world.end(&claimed[0], End::Completed).await;
        let mut claimed = world.claim_up_to(1).await;
        claimed.extend(world.claim_up_to(1).await);
        assert_eq!(names(claimed.iter().map(|c| &c.head.run)), ["r4"], "{}", broken.way);
    })
    .await;
}

/// Lists show the others.
pub async fn damaged_head_stops_no_list(bench: &dyn Bench) {
    each_way(bench, async |broken| {
        let world = &broken.world;
        for name in ["r1", "r2", "r3"] {
            world.parked(name, &[question("q1", None)]).await;
        }
        broken.break_head(&id("r2")).await;
        let runs = world.runs(&RunFilter::default(), None, 9).await.unwrap().rows;
        assert_eq!(names(runs.iter().map(|head| &head.run)), ["r3", "r1"], "{}", broken.way);
        let open = world.questions(&QuestionFilter::default(), None, 9).await.unwrap().rows;
        assert_eq!(names(open.iter().map(|q| &q.head.run)), ["r1", "r3"], "{}", broken.way);
    })
    .await;
}

/// Whether the claim tells of damage, or has not all that the head counts.
fn is_noticed(claimed: &ClaimedRun) -> bool {
    let head = &claimed.head;
    claimed.damage.is_some()
        || claimed.snapshot.as_deref() != Some(b"snapshot")
        || claimed.journal.len() as u64 != head.seq - head.snapshot_seq
}

/// A payload that was altered, cut, emptied, taken away or brought from another run is told with
/// the claim, never given, and its owner can end the run.
pub async fn damaged_payload_is_told(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let ns = world.namespace();
    world.created(&NewRun { graph: id("other"), ..new_run("other") }).await;
    let other = bench.stored(ns, &id("other"), Part::Payload).await;
    for number in 0..6 {
        let run = world.created(&new_run(&format!("r{number}"))).await;
        let good = bench.stored(ns, &run, Part::Payload).await;
        let flipped = |at: usize| {
            let mut bytes = good.clone();
            bytes[at] ^= 1;
            Some(bytes)
        };
        let bad = match number {
            0 => flipped(0),
            1 => flipped(good.len() - 1),
            2 => Some(good[..good.len() - 1].to_vec()),
            3 => Some(Vec::new()),
            4 => Some(other.clone()),
            _ => None,
        };
        bench.overwrite(ns, &run, Part::Payload, bad.as_deref()).await;
        assert_eq!(world.payload(&run).await.unwrap_err().code(), Code::StateCorrupt);
        let claimed = world.claim_next().await;
        assert_eq!(claimed.payload, b"", "{number}");
        assert!(claimed.damage.is_some(), "{number}");
        world.end(&claimed, End::Failed(ReasonCode::Undecodable)).await;
        assert_eq!(world.head_of(&run).await.reason(), Some(ReasonCode::Undecodable));
        match bad {
            Some(bad) => assert_eq!(bench.stored(ns, &run, Part::Payload).await, bad, "kept"),
            None => bench.overwrite(ns, &run, Part::Payload, Some(&good)).await,
        }
    }
}

/// A journal or snapshot of which something is missing reaches its owner, who can end the run.
pub async fn missing_parts_let_a_run_end(bench: &dyn Bench) {
    let world = World::new(bench).await;
    let ns = world.namespace();
    for (n, part) in [Part::Snapshot, Part::Event(3), Part::Event(2)].into_iter().enumerate() {
        for session in [None, Some(id("s1"))] {
            let name = format!("r{n}-{}", session.is_some());
            let new = NewRun { session, ..new_run(&name) };
            world.created(&new).await;
            let first = world.claim_next().await;
            let draft = world.draft(&first, 2, Disposition::Continue);
            world.done(&CommitRequest { snapshot: Some(b"snapshot".to_vec()), ..draft }).await;
            let head = world.head_of(&first.head.run).await;
            let again = Disposition::Reschedule { until_ms: 0 };
            world.done(&world.draft_on(&first.lease, &head, 2, again)).await;
            bench.overwrite(ns, &new.run, part, None).await;
            let claimed = world.claim_next().await;
            assert!(is_noticed(&claimed), "{name}");
            world.end(&claimed, End::Failed(ReasonCode::Undecodable)).await;
            assert_eq!(world.status_of(&new.run).await, RunStatus::Failed, "{name}");
        }
    }
}

/// Leases of sound runs are renewed beside a damaged one.
pub async fn damaged_head_stops_no_renewal(bench: &dyn Bench) {
    each_way(bench, async |broken| {
        let world = &broken.world;
        for name in ["r1", "r2"] {
            world.created(&new_run(name)).await;
        }
        let claimed = world.claim_up_to(2).await;
        broken.break_head(&id("r1")).await;
        let leases: Vec<_> = claimed.iter().map(|claimed| claimed.lease.clone()).collect();
        let renewed = world.renew(&leases, HOUR_MS).await.unwrap();
        let kept = crate::Renewal::Kept { cancel: false, has_inbox: false };
        let of_sound = leases.iter().zip(&renewed).find(|(lease, _)| lease.run == id("r2"));
        assert_eq!(of_sound.unwrap().1, &kept, "{}", broken.way);
    })
    .await;
}
