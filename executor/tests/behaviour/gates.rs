//! Gates and asks: parked, answered once, never passed without a decision.

use std::time::Duration;

use holdpoint_executor::Outcome;
use holdpoint_graph::{
    Event, Gate, InterruptId, NodeContext, NodeError, NodeOptions, Question, RetryPolicy, RunId,
    RunStatus, State, StateGraph, Update,
};
use holdpoint_storage::{Address, QuestionFilter, SignalReply};
use holdpoint_testkit::until_async;
use serde_json::{Value, json};

use crate::{
    bench::{Bench, Log, on_each_store},
    nodes::logged,
};

/// a, gate-1 before b, gate-2 before z; nodes log their names.
fn two_gates(log: &Log) -> StateGraph {
    let gated = |name: &str| NodeOptions::new().gate(Gate::new(name, Question::new("Go on?")));
    StateGraph::new("gates")
        .add_node("a", logged("a", log))
        .add_node_with("b", gated("gate-1"), logged("b", log))
        .add_node_with("z", gated("gate-2"), logged("z", log))
        .add_edge("a", "b")
        .add_edge("b", "z")
        .set_entry_point("a")
        .set_finish_point("z")
}

pub(crate) async fn open(bench: &Bench, run: &RunId) -> InterruptId {
    let page = bench.store.questions(&QuestionFilter::of_run(run), None, 10).await.unwrap();
    assert_eq!(page.rows.len(), 1);
    page.rows[0].interrupt.clone()
}

pub(crate) fn yes() -> Value {
    json!({ "approve": true })
}

/// T3 and B3: the second of two equal approvals does not open the next gate.
#[tokio::test]
async fn a_second_click_opens_nothing() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        bench.add(two_gates(&log).compile().unwrap());
        let run = bench.enqueue("gates", json!({})).await;
        assert_eq!(bench.work().await, Some(Outcome::Parked));
        let first = open(&bench, &run).await;
        let address = Address::Interrupt(first.clone());
        let reply = bench.signal(&run, address.clone(), yes()).await;
        assert!(matches!(reply, SignalReply::Delivered { .. }));
        let reply = bench.signal(&run, address.clone(), yes()).await;
        assert!(matches!(reply, SignalReply::Decided { .. }), "{reply:?}");
        assert_eq!(bench.work().await, Some(Outcome::Parked));
        let reply = bench.signal(&run, address, yes()).await;
        assert_eq!(reply, SignalReply::NotOpen);
        assert_ne!(open(&bench, &run).await, first);
        assert_eq!(log.all(), ["a", "b"]);
        bench.answer(&run, yes()).await;
        assert_eq!(bench.work().await, Some(Outcome::Completed));
        assert_eq!(log.all(), ["a", "b", "z"]);
    })
    .await;
}

/// T4 and B2: a worker that dies after the node before a gate, before the park, approves nothing.
#[tokio::test]
async fn a_crash_before_the_park_approves_nothing() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        bench.add(two_gates(&log).compile().unwrap());
        let run = bench.enqueue("gates", json!({})).await;
        assert_eq!(bench.work().await, Some(Outcome::Parked));
        bench.answer(&run, yes()).await;
        // Each owner dies right before its commits 1, 2, ... until nothing is left to do.
        for number in 1..=3 {
            let faulty =
                holdpoint_testkit::FaultyStore::new(bench.store.clone(), move |name, at| {
                    let dies = name == "commit" && at == number;
                    if dies {
                        holdpoint_testkit::Fault::HangBefore
                    } else {
                        holdpoint_testkit::Fault::Pass
                    }
                });
            let faulty = std::sync::Arc::new(faulty);
            let work = bench.over(std::sync::Arc::clone(&faulty) as _);
            let working = tokio::spawn(async move { work.work().await });
            until_async("the end", Duration::from_secs(10), async || {
                (working.is_finished() || faulty.count("commit") >= number).then_some(())
            })
            .await;
            working.abort();
            let _ = working.await;
            bench.lose("w1").await;
        }
        bench.drain().await;
        assert_eq!(bench.status(&run).await, RunStatus::Parked);
        assert_eq!(log.count("z"), 0);
        let progress = bench.progress(&run).await;
        assert_eq!(progress.open().next().unwrap().gate.as_deref(), Some("gate-2"));
        let answered = bench.count(&run, "interrupt_answered").await;
        assert_eq!(answered, 1);
    })
    .await;
}

/// B4: the answer reaches the node as it was given, whatever it is.
#[tokio::test]
async fn the_answer_reaches_the_node_unchanged() {
    on_each_store(async |mut bench: Bench| {
        let graph = StateGraph::new("g")
            .add_interrupt_node("gate", |ctx: NodeContext, _: State| async move {
                let answer = ctx.answer().expect("the gate was answered");
                Ok(Update::new().set("got", &answer.value).set("by", &answer.by))
            })
            .set_entry_point("gate")
            .set_finish_point("gate");
        bench.add(graph.compile().unwrap());
        let answers = [
            json!({ "ok": false }),
            json!(null),
            json!(false),
            json!(0),
            json!(""),
            json!([]),
            json!({}),
            json!("null"),
            json!({ "3f2a3f2a3f2a3f2a3f2a3f2a3f2a3f2a": "x" }),
            json!("x".repeat(200_000)),
        ];
        for answer in answers {
            let run = bench.enqueue("g", json!({})).await;
            assert_eq!(bench.work().await, Some(Outcome::Parked));
            bench.answer(&run, answer.clone()).await;
            assert_eq!(bench.work().await, Some(Outcome::Completed));
            let state = bench.state(&run).await;
            assert_eq!((state.get("got"), state.get("by")), (Some(&answer), Some(&json!("ann"))));
        }
    })
    .await;
}

/// A rejection goes where the gate says, and the gated node does not run.
#[tokio::test]
async fn a_rejection_takes_its_own_way() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        let gate = Gate::new("c", Question::new("Go on?")).reject_to("rejected");
        let graph = StateGraph::new("g")
            .add_node("a", logged("a", &log))
            .add_node_with("c", NodeOptions::new().gate(gate), logged("c", &log))
            .add_node("rejected", logged("rejected", &log))
            .add_edge("a", "c")
            .set_entry_point("a")
            .set_finish_point("c")
            .set_finish_point("rejected");
        bench.add(graph.compile().unwrap());
        let run = bench.enqueue("g", json!({})).await;
        assert_eq!(bench.work().await, Some(Outcome::Parked));
        bench.answer(&run, json!({ "approve": false })).await;
        assert_eq!(bench.work().await, Some(Outcome::Completed));
        assert_eq!(log.all(), ["a", "rejected"]);
    })
    .await;
}

/// IN-16: when a branch fails for good, before another has parked or after, the question closes; a
/// redrive asks again under a new id.
#[tokio::test]
async fn a_failure_beside_a_question_closes_it() {
    on_each_store(async |mut bench: Bench| {
        for attempts in [1, 2] {
            let log = Log::default();
            let bad = log.clone();
            let retry = RetryPolicy::fixed(attempts, Duration::from_millis(30));
            let graph = StateGraph::new("g")
                .add_router("start")
                .add_interrupt_node("asks", logged("asks", &log))
                .add_node_with(
                    "bad",
                    NodeOptions::new().retry(retry),
                    move |_: NodeContext, _: State| {
                        bad.add("bad");
                        let is_mended = bad.count("bad") > attempts as usize;
                        let end = if is_mended { Ok(()) } else { Err(NodeError::retryable("no")) };
                        std::future::ready(end)
                    },
                )
                .add_edge("start", "asks")
                .add_edge("start", "bad")
                .set_entry_point("start")
                .set_finish_point("asks")
                .set_finish_point("bad");
            bench.add(graph.compile().unwrap());
            let run = bench.enqueue("g", json!({})).await;
            bench.work().await;
            let asked = |event: &Event| match event {
                Event::InterruptOpened { interrupt } => Some(interrupt.interrupt.clone()),
                _ => None,
            };
            let first = bench.events(&run).await.iter().find_map(asked).unwrap();
            until_async("the run to fail", Duration::from_secs(10), async || {
                bench.work().await;
                bench.status(&run).await.is_terminal().then_some(())
            })
            .await;
            let progress = bench.progress(&run).await;
            assert_eq!(progress.reason().unwrap().node.as_deref(), Some("bad"));
            let reply = bench.signal(&run, Address::Interrupt(first.clone()), json!(1)).await;
            assert_eq!(reply, SignalReply::Final { status: RunStatus::Failed });
            assert!(
                bench
                    .store
                    .questions(&QuestionFilter::default(), None, 10)
                    .await
                    .unwrap()
                    .rows
                    .is_empty()
            );
            crate::faults::redrive(&bench, &run).await;
            assert_eq!(bench.work().await, Some(Outcome::Parked));
            assert_ne!(open(&bench, &run).await, first);
            bench.answer(&run, json!(2)).await;
            assert_eq!(bench.work().await, Some(Outcome::Completed));
            assert_eq!((log.count("asks"), log.count("bad")), (1, attempts as usize + 1));
        }
    })
    .await;
}

/// IN-03: a bare answer to two open questions is refused and consumes nothing.
#[tokio::test]
async fn a_bare_answer_to_two_questions_is_refused() {
    on_each_store(async |mut bench: Bench| {
        let asks = |key: &'static str| {
            move |ctx: NodeContext, _: State| async move {
                let answer = ctx.ask(key, Question::new("?")).await?;
                Ok(Update::new().set(key, answer.value))
            }
        };
        let graph = StateGraph::new("g")
            .add_router("start")
            .add_node("l", asks("l"))
            .add_node("r", asks("r"))
            .add_edge("start", "l")
            .add_edge("start", "r")
            .set_entry_point("start")
            .set_finish_point("l")
            .set_finish_point("r");
        bench.add(graph.compile().unwrap());
        let run = bench.enqueue("g", json!({})).await;
        assert_eq!(bench.work().await, Some(Outcome::Parked));
        let reply = bench.signal(&run, Address::Only, json!(1)).await;
        let SignalReply::Ambiguous { open } = reply else { panic!("{reply:?}") };
        assert_eq!(open.len(), 2);
        for (n, id) in open.into_iter().enumerate() {
            let reply = bench.signal(&run, Address::Interrupt(id), json!(n)).await;
            assert!(matches!(reply, SignalReply::Delivered { .. }));
        }
        assert_eq!(bench.work().await, Some(Outcome::Completed));
        let state = bench.state(&run).await;
        let got = [state.get("l").cloned(), state.get("r").cloned()];
        assert!(got.contains(&Some(json!(0))) && got.contains(&Some(json!(1))), "{got:?}");
    })
    .await;
}

/// A copy of an early answer that was late on its way answers nothing a second time.
#[tokio::test]
async fn a_late_copy_of_an_answer_answers_nothing() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        let graph = StateGraph::new("g")
            .add_interrupt_node("gate", logged("gate", &log))
            .add_conditional_edge("gate", |_| "gate", ["gate", holdpoint_graph::END])
            .set_entry_point("gate");
        bench.add(graph.compile().unwrap());
        let run = bench.enqueue("g", json!({})).await;
        let request = holdpoint_graph::RequestId::new("click").unwrap();
        for visits in [1, 1] {
            let address = Address::Gate("gate".to_owned());
            bench.signal_as(request.clone(), &run, address, json!(1)).await;
            bench.work().await;
            assert_eq!(bench.status(&run).await, RunStatus::Parked);
            assert_eq!(log.count("gate"), visits);
        }
    })
    .await;
}

/// A question whose text is a function has one text: that of its opening. Neither a lost worker
/// nor a new owner with another function asks it again.
#[tokio::test]
async fn a_computed_question_is_computed_once() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        let asked = log.clone();
        let question = Question::made(move |state| {
            asked.add("text");
            format!("Pay {} (text {})?", state["amount"], asked.count("text"))
        });
        let options = NodeOptions::new().gate(Gate::new("pay", question));
        let graph = StateGraph::new("g")
            .add_node_with("pay", options, logged("pay", &log))
            .set_entry_point("pay")
            .set_finish_point("pay");
        bench.add(graph.compile().unwrap());
        let run = bench.enqueue("g", json!({ "amount": 5 })).await;
        // The question is durable, and its worker dies with the reply.
        crate::crashes::die_at_commit(&bench, 1, holdpoint_testkit::Fault::HangAfter).await;
        bench.drain().await;
        let open = bench.progress(&run).await.open().next().cloned().unwrap();
        assert_eq!(open.question, "Pay 5 (text 1)?");
        let hash = open.args_hash.clone();
        bench.answer(&run, yes()).await;
        bench.drain().await;
        assert_eq!(bench.status(&run).await, RunStatus::Completed);
        assert_eq!((log.count("text"), log.count("pay")), (1, 1));
        let taken = bench.events(&run).await.into_iter().find_map(|event| match event {
            Event::InterruptAnswered { answer, .. } => answer.args_hash,
            _ => None,
        });
        assert_eq!(taken, Some(hash), "the decision is bound to what was asked");
    })
    .await;
}
