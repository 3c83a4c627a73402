//! A server that is killed under load, again and again: between two commands, or in the middle of
//! one, whose script is then there as a whole or not at all.

use holdpoint::{RunId, RunRequest};
use holdpoint_testkit::until_async;

use crate::{
    case::end_worker,
    checks,
    graph::{GRAPH, Version},
    stage::{Backend, LONG, Stage},
    table::End,
};

const RUNS: usize = 12;
/// How many lines the ledger grows between two kills; runs write some 16 each.
const LINES: usize = 20;
const KILLS: usize = 8;

pub(crate) async fn play() {
    let stage = Stage::new(Backend::Redis).await;
    let server = stage.redis.as_ref().expect("the stage has a server");
    let mut workers = [(); 2].map(|()| stage.clean("worker 1").spawn());
    let mut runs: Vec<RunId> = Vec::new();
    for _ in 0..RUNS {
        let request = RunRequest::new(GRAPH).allow_unknown();
        runs.push(stage.producer.enqueue(&request).await.expect("a run is taken").run);
    }
    for kill in 1..=KILLS {
        until_async("the runs to go on", LONG, async || {
            for run in &runs {
                stage.attend(run, End::Completed).await;
            }
            (stage.scratch.ledger().entries().len() >= kill * LINES).then_some(())
        })
        .await;
        server.kill_9();
        server.restart();
    }
    for run in &runs {
        stage.until_ended(run, End::Completed).await;
    }
    workers.iter_mut().for_each(end_worker);
    checks::check(&stage, &runs, Version::One).await;
}
