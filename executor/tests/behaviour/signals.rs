//! Questions and answers where they can be mixed up: ids, doubled answers, answers that come while
//! a run is on its way, sub-graphs, and pauses that somebody might swallow.

use std::{collections::BTreeSet, time::Duration};

use holdpoint_executor::Outcome;
use holdpoint_graph::{
    AppendReducer, Event, InterruptId, KeyMapping, NodeContext, NodeError, NodeOptions, Question,
    RetryPolicy, RunId, RunStatus, State, StateGraph, StateSchema, Update,
};
use holdpoint_storage::{Address, QuestionFilter, SignalReply};
use holdpoint_testkit::until_async;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::{
    bench::{Bench, Log, on_each_store},
    faults::redrive,
    nodes::logged,
};

/// The open questions of a run.
async fn open(bench: &Bench, run: &RunId) -> Vec<InterruptId> {
    let page = bench.store.questions(&QuestionFilter::of_run(run), None, 100).await.unwrap();
    page.rows.into_iter().map(|row| row.interrupt).collect()
}

fn lists() -> StateSchema {
    StateSchema::new().with("got", AppendReducer)
}

/// Asks once, and appends the answer to `got`.
async fn asks(ctx: NodeContext, _: State) -> Result<Update, NodeError> {
    let answer = ctx.ask("q", Question::new("What?")).await?;
    Ok(Update::new().set("got", answer.value))
}

/// IN-01: questions of one step, under one key, have ids of their own, which stay over a lost
/// worker; a new round asks under a new id.
#[tokio::test]
async fn each_question_has_an_id_of_its_own() {
    on_each_store(async |mut bench: Bench| {
        let mut graph = StateGraph::new("g").with_schema(lists()).add_router("start");
        for name in ["l", "m", "r"] {
            graph = graph.add_node(name, asks).add_edge("start", name).add_edge(name, "loop");
        }
        let again = |state: &State| {
            let count = state.get("got").and_then(Value::as_array).map_or(0, Vec::len);
            if count < 5 { "loop" } else { holdpoint_graph::END }
        };
        let graph = graph
            .add_node("loop", asks)
            .add_conditional_edge("loop", again, ["loop", holdpoint_graph::END])
            .set_entry_point("start");
        bench.add(graph.compile().unwrap());
        let run = bench.enqueue("g", json!({})).await;
        assert_eq!(bench.work().await, Some(Outcome::Parked));
        let first = open(&bench, &run).await;
        assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), 3);
        let mut seen: BTreeSet<InterruptId> = first.iter().cloned().collect();
        for (number, id) in first.iter().enumerate() {
            bench.signal(&run, Address::Interrupt(id.clone()), json!(number)).await;
            // An owner that dies before it has told anybody leaves the ids as they are.
            if number < 2 {
                bench.claim("w1").await.unwrap();
                bench.lose("w1").await;
            }
            assert_eq!(open(&bench, &run).await, first, "they are open until they are taken");
        }
        for round in 3..5 {
            assert_eq!(bench.work().await, Some(Outcome::Parked));
            let [id] = &open(&bench, &run).await[..] else { panic!("one question") };
            assert!(seen.insert(id.clone()), "round {round} has a new id");
            bench.answer(&run, json!(round)).await;
        }
        assert_eq!(bench.work().await, Some(Outcome::Completed));
        // The branches' answers stand in the order of the branches, which is not that of the ids.
        let state = bench.state(&run).await;
        let got = state.get("got").and_then(Value::as_array).unwrap();
        let mut got: Vec<u64> = got.iter().map(|number| number.as_u64().unwrap()).collect();
        got[..3].sort_unstable();
        assert_eq!(got, [0, 1, 2, 3, 4]);
    })
    .await;
}

/// IN-10: twenty people answer one question at once, half of them yes and half no, fifty times.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_twenty_answers_at_once_one_decides() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        bench.add(
            StateGraph::new("g")
                .with_schema(lists())
                .add_node("asks", asks)
                .add_node("effect", logged("effect", &log))
                .add_edge("asks", "effect")
                .set_entry_point("asks")
                .set_finish_point("effect")
                .compile()
                .unwrap(),
        );
        for round in 1..=50 {
            let run = bench.enqueue("g", json!({})).await;
            assert_eq!(bench.work().await, Some(Outcome::Parked));
            let question = Address::Interrupt(open(&bench, &run).await.remove(0));
            let mut senders = JoinSet::new();
            for number in 0..20 {
                let (bench, run, to) = (bench.clone(), run.clone(), question.clone());
                let answer = json!({ "approve": number % 2 == 0, "n": number });
                senders
                    .spawn(async move { (answer.clone(), bench.signal(&run, to, answer).await) });
            }
            let (mut taken, mut told) = (Vec::new(), Vec::new());
            for (answer, reply) in senders.join_all().await {
                match reply {
                    SignalReply::Delivered { .. } => taken.push(answer),
                    SignalReply::Decided { record } => told.push(record),
                    other => panic!("{other:?}"),
                }
            }
            assert_eq!((taken.len(), told.len()), (1, 19), "round {round}");
            for record in told {
                let first = holdpoint_storage::SignalRecord::decode(&record).unwrap();
                assert_eq!((&first.answer, &*first.by), (&taken[0], "ann"));
            }
            assert_eq!(bench.work().await, Some(Outcome::Completed));
            assert_eq!(bench.state(&run).await.get("got"), Some(&json!(taken)));
            assert_eq!(bench.count(&run, "interrupt_answered").await, 1);
            assert_eq!(log.count("effect"), round);
        }
    })
    .await;
}

/// IN-11: 200 numbered answers as fast as the questions open, each of them from several senders,
/// while the run resumes: what was acknowledged stands there once and in order, and the run ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn numbered_answers_are_taken_once_and_in_order() {
    const NUMBERS: usize = 200;
    on_each_store(async |mut bench: Bench| {
        let route = |state: &State| {
            let count = state.get("got").and_then(Value::as_array).map_or(0, Vec::len);
            if count < NUMBERS { "asks" } else { holdpoint_graph::END }
        };
        let graph = StateGraph::new("g")
            .with_schema(lists())
            .add_node("asks", asks)
            .add_conditional_edge("asks", route, ["asks", holdpoint_graph::END])
            .set_entry_point("asks");
        bench.add(graph.compile().unwrap());
        let run = bench.enqueue("g", json!({})).await;
        let fire = async |sender: usize| {
            let mut taken = Vec::new();
            for number in 0.. {
                let answer = json!(number * 10 + sender);
                match bench.signal(&run, Address::Only, answer.clone()).await {
                    SignalReply::Delivered { .. } => taken.push(answer),
                    SignalReply::Decided { .. } | SignalReply::NoQuestion => {}
                    SignalReply::Final { .. } => break,
                    other => panic!("{other:?}"),
                }
                tokio::task::yield_now().await;
            }
            taken
        };
        let work = async {
            until_async("the end under fire", Duration::from_secs(60), async || {
                bench.work().await;
                bench.status(&run).await.is_terminal().then_some(())
            })
            .await;
        };
        let (one, two, ()) = tokio::join!(fire(1), fire(2), work);
        assert_eq!(bench.status(&run).await, RunStatus::Completed);
        let state = bench.state(&run).await;
        let got = state.get("got").and_then(Value::as_array).cloned().unwrap();
        assert_eq!(got.len(), NUMBERS);
        for taken in [one, two] {
            let sender = taken.first().map_or(0, |first| first.as_u64().unwrap() % 10);
            let of_sender = got.iter().filter(|n| n.as_u64().unwrap() % 10 == sender);
            assert_eq!(of_sender.cloned().collect::<Vec<_>>(), taken, "in order, each once");
        }
    })
    .await;
}

/// s0 beside a slow branch, then two questions, one after the other.
fn inner(log: &Log) -> StateGraph {
    StateGraph::new("inner")
        .with_schema(lists())
        .add_node("s0", logged("s0", log))
        .add_node("beside", logged("beside", log))
        .add_node("ask1", asks)
        .add_node("ask2", asks)
        .add_node("s1", logged("s1", log))
        .add_edge("s0", "ask1")
        .add_edge("s0", "beside")
        .add_edge("ask1", "ask2")
        .add_edge("ask2", "s1")
        .add_edge("beside", "s1")
        .set_entry_point("s0")
        .set_finish_point("s1")
}

/// IN-12 and IN-13: a sub-graph two levels deep, twice in one run: nothing before a question runs
/// again, each question gets its own answer, and each owner dies after its first commit.
#[tokio::test]
async fn sub_graphs_go_on_where_they_asked() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        let inner = inner(&log).compile().unwrap();
        let middle = StateGraph::new("middle")
            .with_schema(lists())
            .add_subgraph("deep", &inner, KeyMapping::new())
            .set_entry_point("deep")
            .set_finish_point("deep")
            .compile()
            .unwrap();
        let graph = StateGraph::new("g")
            .with_schema(lists())
            .add_node("p0", logged("p0", &log))
            .add_subgraph("one", &middle, KeyMapping::new())
            .add_subgraph("two", &middle, KeyMapping::new())
            .add_node("p1", logged("p1", &log))
            .add_edge("p0", "one")
            .add_edge("one", "two")
            .add_edge("two", "p1")
            .set_entry_point("p0")
            .set_finish_point("p1");
        bench.add(graph.compile().unwrap());
        let run = bench.enqueue("g", json!({})).await;
        for number in 0..4 {
            assert_eq!(bench.work().await, Some(Outcome::Parked), "question {number}");
            bench.answer(&run, json!(number)).await;
            bench.claim("w1").await.unwrap();
            bench.lose("w1").await;
        }
        assert_eq!(bench.work().await, Some(Outcome::Completed));
        assert_eq!(bench.state(&run).await.get("got"), Some(&json!([0, 1, 2, 3])));
        for (node, times) in [("p0", 1), ("s0", 2), ("beside", 2), ("s1", 2), ("p1", 1)] {
            assert_eq!(log.count(node), times, "{node}");
        }
        let events = bench.events(&run).await;
        let opened = events.iter().filter_map(|event| match event {
            Event::InterruptOpened { interrupt } => Some(interrupt.interrupt.clone()),
            _ => None,
        });
        assert_eq!(opened.collect::<BTreeSet<_>>().len(), 4);
    })
    .await;
}

/// IN-14: a node that swaps its two questions the second time fails; no answer is swapped.
#[tokio::test]
async fn swapped_questions_are_no_swapped_answers() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        let node = log.clone();
        let graph = StateGraph::new("g")
            .add_node("n", move |ctx: NodeContext, _: State| {
                node.add("top");
                let keys = if node.count("top") < 3 { ["a", "b"] } else { ["b", "a"] };
                async move {
                    let mut update = Update::new();
                    for key in keys {
                        let answer = ctx.ask(key, Question::new("?")).await?;
                        update = update.set(key, answer.value);
                    }
                    Ok(update)
                }
            })
            .set_entry_point("n")
            .set_finish_point("n");
        bench.add(graph.compile().unwrap());
        let run = bench.enqueue("g", json!({})).await;
        for number in 0..2 {
            assert_eq!(bench.work().await, Some(Outcome::Parked));
            bench.answer(&run, json!(number)).await;
        }
        assert!(matches!(bench.work().await, Some(Outcome::Failed(_))));
        let progress = bench.progress(&run).await;
        let message = &progress.reason().unwrap().message;
        assert!(message.contains("NonDeterministicNode"), "{message}");
        assert_eq!((progress.state().get("a"), progress.state().get("b")), (None, None));
    })
    .await;
}

/// IN-15: neither retries nor code that takes every error for a success see a pause.
#[tokio::test]
async fn a_pause_is_no_error() {
    on_each_store(async |mut bench: Bench| {
        let swallows = |ctx: NodeContext, _: State| async move {
            let mut tries = 0;
            let answer = loop {
                tries += 1;
                match ctx.ask("q", Question::new("?")).await {
                    Ok(answer) => break answer.value,
                    Err(_) if tries < 3 => {}
                    Err(_) => break json!("ok"),
                }
            };
            Ok::<_, NodeError>(Update::new().set("answer", answer).set("attempt", ctx.attempt()))
        };
        let options = NodeOptions::new().retry(RetryPolicy::fixed(3, Duration::ZERO));
        let graph = StateGraph::new("g")
            .add_node_with("n", options, swallows)
            .set_entry_point("n")
            .set_finish_point("n");
        bench.add(graph.compile().unwrap());
        let run = bench.enqueue("g", json!({})).await;
        assert_eq!(bench.work().await, Some(Outcome::Parked));
        assert_eq!(bench.count(&run, "node_failed").await, 0);
        bench.answer(&run, json!("yes")).await;
        assert_eq!(bench.work().await, Some(Outcome::Completed));
        let state = bench.state(&run).await;
        assert_eq!(state.get("answer"), Some(&json!("yes")));
        assert_eq!(state.get("attempt"), Some(&json!(1)), "no retry was spent");
    })
    .await;
}

/// IN-20: what follows an answer fails for good; a redrive goes on behind the answer.
#[tokio::test]
async fn a_redrive_goes_on_behind_the_answer() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        let node = log.clone();
        let graph = StateGraph::new("g")
            .with_schema(lists())
            .add_node("asks", asks)
            .add_node_with(
                "flaky",
                NodeOptions::new().retry(RetryPolicy::fixed(2, Duration::ZERO)),
                move |_: NodeContext, _: State| {
                    node.add("flaky");
                    let is_mended = node.count("flaky") > 2;
                    let end = if is_mended { Ok(()) } else { Err(NodeError::retryable("no")) };
                    std::future::ready(end)
                },
            )
            .add_edge("asks", "flaky")
            .set_entry_point("asks")
            .set_finish_point("flaky");
        bench.add(graph.compile().unwrap());
        let run = bench.enqueue("g", json!({})).await;
        assert_eq!(bench.work().await, Some(Outcome::Parked));
        bench.answer(&run, json!("yes")).await;
        bench.drain().await;
        assert_eq!(bench.status(&run).await, RunStatus::Failed);
        redrive(&bench, &run).await;
        bench.drain().await;
        assert_eq!(bench.status(&run).await, RunStatus::Completed);
        assert_eq!(bench.count(&run, "interrupt_opened").await, 1, "it does not ask again");
        assert_eq!(bench.state(&run).await.get("got"), Some(&json!(["yes"])));
    })
    .await;
}
