//! What stands before a question has been done, however often the run is resumed and its workers
//! are killed.

use holdpoint::{Event, InterruptId, QuestionFilter, RunStatus, SignalOptions};
use holdpoint_testkit::until_async;
use serde_json::{Value, json};

use crate::world::{LONG, World, on_all};

/// How often the run is resumed.
const RESUMES: usize = 100;
/// Every so often the worker is killed, now before it can know of an answer, now when it has it. A
/// run that loses ten workers over its life has failed, so it must be fewer.
const KILL_EVERY: usize = 16;

/// Nodes before a gate: the run stands behind them for good.
#[tokio::test]
async fn nodes_before_a_gate_run_once_over_a_hundred_resumes() {
    on_all(async |world| resumed(world, "turns", "before", "start").await).await;
}

/// A step before an ask: its node starts from its top each time, and the step does not.
#[tokio::test]
async fn a_step_before_an_ask_runs_once_over_a_hundred_resumes() {
    on_all(async |world| resumed(world, "deep", "asks", "effect").await).await;
}

async fn resumed(world: &World, graph: &str, node: &str, effect: &str) {
    let run = world.enqueue(graph, json!({ "n": RESUMES })).await;
    let mut worker = world.worker(4);
    world.until(&run, RunStatus::Parked).await;
    let mut last: Option<InterruptId> = None;
    for number in 0..RESUMES {
        let open = until_async("the next question", LONG, async || {
            let page = world.store.questions(&QuestionFilter::of_run(&run), None, 2).await.unwrap();
            let open = page.rows.into_iter().next()?.interrupt;
            (last.as_ref() != Some(&open)).then_some(open)
        })
        .await;
        if number % KILL_EVERY == 0 {
            world.kill(worker).await;
            worker = world.worker(4);
        }
        let signal = SignalOptions::run(run.as_str()).interrupt(open.as_str()).answer(number);
        world.producer.signal(&signal).await.unwrap();
        if number % KILL_EVERY == 5 {
            until_async("the resume", LONG, async || {
                let head = world.store.head(&run).await.unwrap().unwrap();
                (head.status() != RunStatus::Queued).then_some(())
            })
            .await;
            world.kill(worker).await;
            worker = world.worker(4);
        }
        last = Some(open);
    }
    let view = world.until(&run, RunStatus::Completed).await;
    let ledger = world.ledger();
    assert_eq!(ledger.count(run.as_str(), node, effect), 1, "{graph}");
    assert_eq!(ledger.count(run.as_str(), "before", "start"), 1, "{graph}");
    let answers: Vec<Value> = (0..RESUMES).map(Value::from).collect();
    assert_eq!(view.state.get("answers"), Some(&Value::from(answers)));
    let (mut opened, mut answered) = (Vec::new(), Vec::new());
    for event in world.events(&run).await {
        match event {
            Event::InterruptOpened { interrupt } => opened.push(interrupt.interrupt),
            Event::InterruptAnswered { interrupt, .. } => answered.push(interrupt),
            _ => {}
        }
    }
    assert_eq!((opened.len(), &opened), (RESUMES, &answered));
    let lost = view.counters.lost_workers;
    println!("{graph}: {lost} claims were lost in {RESUMES} resumes");
}
