//! Asks: questions that a node puts itself.

use holdpoint_executor::Outcome;
use holdpoint_graph::{NodeContext, Question, State, StateGraph, Update};
use serde_json::json;

use crate::bench::{Bench, on_each_store};

/// A node that asks twice: each answer goes to its own question; steps before are not repeated.
#[tokio::test]
async fn two_asks_of_one_node_get_their_own_answers() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        let node = log.clone();
        let graph = StateGraph::new("g")
            .add_node("n", move |ctx: NodeContext, _: State| {
                let log = node.clone();
                async move {
                    log.add("top");
                    ctx.step("effect", || async {
                        log.add("effect");
                        Ok(())
                    })
                    .await?;
                    let first = ctx.ask("first", Question::new("One?")).await?;
                    let second = ctx.ask("second", Question::new("Two?")).await?;
                    Ok(Update::new().set("first", first.value).set("second", second.value))
                }
            })
            .set_entry_point("n")
            .set_finish_point("n");
        bench.add(graph.compile().unwrap());
        let run = bench.enqueue("g", json!({})).await;
        assert_eq!(bench.work().await, Some(Outcome::Parked));
        bench.answer(&run, json!(1)).await;
        assert_eq!(bench.work().await, Some(Outcome::Parked));
        bench.answer(&run, json!(2)).await;
        assert_eq!(bench.work().await, Some(Outcome::Completed));
        assert_eq!((log.count("top"), log.count("effect")), (3, 1));
        let state = bench.state(&run).await;
        assert_eq!((state.get("first"), state.get("second")), (Some(&json!(1)), Some(&json!(2))));
    })
    .await;
}

/// A node that asks otherwise than before fails loudly; no answer is swapped.
#[tokio::test]
async fn a_node_that_asks_in_another_order_fails() {
    on_each_store(async |mut bench: Bench| {
        let log = bench.log();
        let node = log.clone();
        let graph = StateGraph::new("g")
            .add_node("n", move |ctx: NodeContext, _: State| {
                node.add("top");
                let key = if node.count("top") == 1 { "first" } else { "other" };
                async move {
                    let answer = ctx.ask(key, Question::new("?")).await?;
                    Ok(Update::new().set("got", answer.value))
                }
            })
            .set_entry_point("n")
            .set_finish_point("n");
        bench.add(graph.compile().unwrap());
        let run = bench.enqueue("g", json!({})).await;
        assert_eq!(bench.work().await, Some(Outcome::Parked));
        bench.answer(&run, json!(1)).await;
        assert!(matches!(bench.work().await, Some(Outcome::Failed(_))));
        let progress = bench.progress(&run).await;
        let message = &progress.reason().unwrap().message;
        assert!(message.contains("NonDeterministicNode"), "{message}");
        assert_eq!(progress.state().get("got"), None);
    })
    .await;
}

/// Code that throws the pause away cannot go on without the answer.
#[tokio::test]
async fn a_pause_cannot_be_swallowed() {
    on_each_store(async |mut bench: Bench| {
        let graph = StateGraph::new("g")
            .add_node("n", |ctx: NodeContext, _: State| async move {
                let asked = ctx.ask("q", Question::new("?"));
                let quick = std::future::ready(());
                tokio::select! {
                    biased;
                    answer = asked => { answer?; }
                    () = quick => {}
                }
                Ok(Update::new().set("went_on", true))
            })
            .set_entry_point("n")
            .set_finish_point("n");
        bench.add(graph.compile().unwrap());
        let run = bench.enqueue("g", json!({})).await;
        let outcome = bench.work().await.unwrap();
        assert!(matches!(outcome, Outcome::Parked | Outcome::Failed(_)), "{outcome:?}");
        assert_eq!(bench.state(&run).await.get("went_on"), None);
    })
    .await;
}
