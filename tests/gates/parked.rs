//! Runs that are parked hold nothing, and nobody has to be there for them to stay so.

use holdpoint::{RunFilter, RunRequest, RunStatus, SignalOptions};
use holdpoint_testkit::until_async;
use serde_json::json;

use crate::world::{LONG, World, on_all};

const PARKED: u64 = 500;
const OTHERS: u64 = 50;

async fn until_count(world: &World, status: RunStatus, count: u64) {
    until_async(&format!("{count} runs to be {}", status.as_str()), LONG, async || {
        (world.count(status).await == count).then_some(())
    })
    .await;
}

/// One slot, 500 parked runs: others pass by; all workers and the store go away and come back; then
/// the answers come, and all of the runs go on.
#[tokio::test]
async fn parked_runs_hold_nothing_and_outlive_everybody() {
    on_all(async |world| {
        let enqueue = async |graph: &str, count: u64| {
            let requests: Vec<_> =
                (0..count).map(|_| RunRequest::new(graph).allow_unknown()).collect();
            let receipts = world.producer.enqueue_batch(&requests, false).await.unwrap();
            receipts.into_iter().map(|receipt| receipt.unwrap().run).collect::<Vec<_>>()
        };
        let runs = enqueue("two", PARKED).await;
        let worker = world.worker(1);
        until_count(world, RunStatus::Parked, PARKED).await;
        enqueue("line", OTHERS).await;
        until_count(world, RunStatus::Completed, OTHERS).await;
        world.kill(worker).await;
        if let Some(server) = &world.server {
            server.restart();
        }
        until_count(world, RunStatus::Parked, PARKED).await;
        let filter = RunFilter { statuses: vec![RunStatus::Parked], ..RunFilter::default() };
        let (mut listed, mut next): (u64, Option<String>) = (0, None);
        loop {
            let page = world.producer.list(&filter, next.as_deref(), 100).await.unwrap();
            listed += page.rows.len() as u64;
            next = page.next;
            if next.is_none() {
                break;
            }
        }
        assert_eq!(listed, PARKED);
        for run in &runs {
            for gate in ["one", "two"] {
                let answer = json!({ "approve": true, "n": 1 });
                let signal = SignalOptions::run(run.as_str()).gate(gate).answer(answer);
                world.producer.signal(&signal).await.unwrap();
            }
        }
        let _worker = world.worker(8);
        until_count(world, RunStatus::Completed, PARKED + OTHERS).await;
    })
    .await;
}
