//! The inside of a transition: the file of a store is cut at any byte, as a power cut may leave it,
//! and what opens is the state before the transition that was cut or the one after it, as a whole.
//!
//! The file is that of a workload with every kind of transition in it. A whole transition must
//! leave a sound store too, so that none is made of two.

mod aof;
mod wal;

use std::time::Duration;

use holdpoint::{Producer, RunFilter, RunRequest, Store};
use holdpoint_testkit::verified_journal;

use crate::{
    case::end_worker,
    graph::GRAPH,
    stage::{Backend, LONG, Stage},
    table::End,
};

/// Cuts inside of each transition but the last.
const CUTS: usize = 2;
/// Cuts inside of the last one at the least.
const CUTS_LAST: usize = 100;

/// Cuts the file of a store.
pub(crate) async fn play(backend: Backend) {
    match backend {
        Backend::Sqlite => wal::play().await,
        Backend::Redis => aof::play().await,
    }
}

/// Plays every kind of transition: a run with all that may happen to one, and some that are
/// cancelled and pruned beside it.
async fn work(stage: &Stage) {
    let run = stage.enqueue().await;
    let mut worker = stage.clean("worker 1").spawn();
    stage.until_parked(&run).await;
    end_worker(&mut worker);
    end_one(&stage.producer).await;
    for role in ["prune".to_owned(), format!("migrate {run}")] {
        drop(stage.clean(&role).run(LONG).expect_code(0));
    }
    let victim = stage.clean("worker 2").env("HOLDPOINT_CRASH", "node.in");
    let mut victim = victim.env("HOLDPOINT_CRASH_ACTION", "abort").spawn();
    stage.attend(&run, End::Completed).await;
    victim.wait(LONG);
    let mut worker = stage.clean("worker 2").spawn();
    stage.until_ended(&run, End::Completed).await;
    end_worker(&mut worker);
}

async fn end_one(producer: &Producer) {
    let later = RunRequest::new(GRAPH).delay(Duration::from_secs(3_600)).session("other");
    for _ in 0..2 {
        let run = producer.enqueue(&later).await.expect("a run is taken").run;
        producer.cancel(&run, "driver").await.expect("a run is cancelled");
    }
}

/// A store that opens after a whole transition is sound: its own check finds nothing bad, and
/// every journal is whole.
async fn is_sound(store: &dyn Store) {
    for finding in store.check().await.expect("the store answers") {
        let shown = serde_json::to_value(&finding).expect("a finding can be shown");
        assert_ne!(shown["level"], "bad", "{shown}");
    }
    let page = store.runs(&RunFilter::default(), None, 100).await.expect("the store answers");
    for head in page.rows {
        drop(verified_journal(store, &head.run).await);
    }
}

/// Places to cut between two ends: right behind the first one, and `count` more, the last of which
/// is right before the second.
fn places(from: usize, to: usize, count: usize) -> impl Iterator<Item = usize> {
    let length = to - from;
    let count = count.min(length - 1).max(1);
    (0..=count).map(move |n| from + n * (length - 1) / count)
}

/// What was cut and seen.
#[derive(Debug, Default)]
struct Seen {
    transitions: usize,
    cuts: usize,
}

impl Seen {
    fn told(&self, what: &str) {
        let Self { transitions, cuts } = self;
        assert!(*transitions > 20 && *cuts > 200, "too little to be a test: {self:?}");
        eprintln!("{what}: {cuts} cuts in {transitions} transitions");
    }
}
