//! Races of a run with the world around it: cancels, repeated requests, many timers.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use holdpoint_executor::Outcome;
use holdpoint_graph::{NodeContext, RunId, RunStatus, State, StateGraph};
use holdpoint_storage::{AppendReply, Enqueue as _, Enqueued, Random, When, meaning_hash};
use holdpoint_testkit::{Fault, FaultyStore};
use serde_json::json;

use crate::{
    bench::{Bench, Log, on_each_store},
    faults::cancel,
    nodes::line,
};

/// I15: a run of five nodes is cancelled at any moment. After the acknowledgement no node starts
/// but the one that had leave before it, and the run ends once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancel_at_any_moment_stops_the_run() {
    const NAMES: [&str; 5] = ["a", "b", "c", "d", "e"];
    on_each_store(async |mut bench: Bench| {
        let mut ends = BTreeSet::new();
        for round in 0..200 {
            let log = Log::default();
            let node = log.clone();
            let mut graph = StateGraph::new("five").set_entry_point("a").set_finish_point("e");
            for name in NAMES {
                let log = node.clone();
                graph = graph.add_node(name, move |_: NodeContext, _: State| {
                    log.add(name);
                    async {
                        tokio::task::yield_now().await;
                        Ok(())
                    }
                });
            }
            for pair in NAMES.windows(2) {
                graph = graph.add_edge(pair[0], pair[1]);
            }
            bench.add(graph.compile().unwrap());
            let run = bench.enqueue("five", json!({})).await;
            let work = bench.clone();
            let working = tokio::spawn(async move { work.work().await });
            // Five nodes take a few hundred polls of the store's clock at most.
            let moment = Random.unit() * f64::from(round % 20);
            for _ in 0..moment as usize {
                bench.store.now_ms().await.unwrap();
            }
            let reply = cancel_now(&bench, &run).await;
            let started = log.all().len();
            let outcome = working.await.unwrap();
            let may_have_left = usize::from(reply == AppendReply::Cancelling);
            let after = log.all().len() - started;
            assert!(after <= may_have_left, "round {round}: {after} after {reply:?}");
            let head = bench.head(&run).await;
            assert!(head.status().is_terminal(), "{:?} {outcome:?}", head.status());
            let terminal = ["run_completed", "run_cancelled", "run_failed"];
            let mut count = 0;
            for name in terminal {
                count += bench.count(&run, name).await;
            }
            assert_eq!(count, 1, "round {round}");
            ends.insert(head.status().as_str());
        }
        assert!(ends.contains("cancelled"), "{ends:?}");
    })
    .await;
}

/// A cancel whose journal moved meanwhile is sent again, as a producer does.
async fn cancel_now(bench: &Bench, run: &RunId) -> AppendReply {
    loop {
        match cancel(bench, run).await {
            AppendReply::Moved => {}
            reply => return reply,
        }
    }
}

/// I16: many producers with the same keys, each repeating what had no reply: a run for each key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn equal_keys_make_one_run_each() {
    const KEYS: usize = 100;
    on_each_store(async |bench: Bench| {
        let faulty = FaultyStore::new(bench.store.clone(), |name, at| match (name, at % 5) {
            ("enqueue", 1) => Fault::LoseReply,
            ("enqueue", 3) => Fault::Refuse,
            _ => Fault::Pass,
        });
        let faulty = Arc::new(faulty);
        let producers = (0..32).map(|_| {
            let store = Arc::clone(&faulty);
            tokio::spawn(async move {
                let mut runs = Vec::new();
                for key in 0..KEYS {
                    let input = json!({ "key": key });
                    let mut new = Bench::new_run("line", input.clone());
                    new.key = Some(holdpoint_graph::KeyId::new(format!("k{key}")).unwrap());
                    new.payload_hash = meaning_hash(&input);
                    let items = loop {
                        match store.enqueue(std::slice::from_ref(&new), false).await {
                            Ok(reply) => break reply.items,
                            Err(error) => assert!(error.is_retryable(), "{error}"),
                        }
                    };
                    match items.into_iter().next().unwrap() {
                        Enqueued::Created { run, .. }
                        | Enqueued::Existing { run, .. }
                        | Enqueued::Repeated { run, .. } => runs.push(run),
                        other => panic!("{other:?}"),
                    }
                }
                runs
            })
        });
        let mut all = Vec::new();
        for producer in producers.collect::<Vec<_>>() {
            all.push(producer.await.unwrap());
        }
        assert!(all.iter().all(|runs| *runs == all[0]), "all got the same runs");
        let distinct: BTreeSet<&RunId> = all[0].iter().collect();
        assert_eq!(distinct.len(), KEYS);
        let stats = bench.store.stats().await.unwrap();
        assert!(stats.counts.contains(&(RunStatus::Queued, KEYS as u64)), "{:?}", stats.counts);
        let other = bench.enqueue_with_key("k7", json!({ "key": "other" })).await;
        assert!(matches!(other, Enqueued::KeyConflict { .. }), "{other:?}");
    })
    .await;
}

/// I14: a thousand timers: none early, none twice, none lost. How late they are is reported: it
/// says more of the machine that runs all tests at once than of the store.
#[tokio::test]
async fn a_thousand_timers_fire_once_and_not_early() {
    const TIMERS: i64 = 1_000;
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        bench.add(line("line", &["a"], &log).compile().unwrap());
        let mut due = std::collections::BTreeMap::new();
        let mut news = Vec::new();
        let begin_ms = bench.store.now_ms().await.unwrap() + 500;
        for at in 0..TIMERS {
            let mut new = Bench::new_run("line", json!({}));
            let due_ms = begin_ms + at * 2;
            new.start = When::At(due_ms);
            due.insert(new.run.clone(), due_ms);
            news.push(new);
        }
        for chunk in news.chunks(100) {
            bench.store.enqueue(chunk, false).await.unwrap();
        }
        let mut late = Vec::new();
        let all = due.len();
        let fired = async || {
            for (run, now_ms) in bench.claim_all("w1").await {
                let due_ms = due.remove(&run).expect("a timer fires once");
                assert!(now_ms >= due_ms, "{run} was {} ms early", due_ms - now_ms);
                late.push(now_ms - due_ms);
            }
            (late.len() == all).then_some(())
        };
        holdpoint_testkit::until_async("all timers", Duration::from_secs(30), fired).await;
        late.sort_unstable();
        let p99 = late[late.len() * 99 / 100];
        eprintln!("{}: lateness p99 {p99} ms", bench.store.describe());
        assert!(bench.work().await != Some(Outcome::Completed), "nothing is left");
    })
    .await;
}
