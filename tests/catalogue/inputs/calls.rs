//! Inputs that need more than one call, or a store that fails as planned.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use holdpoint::{
    CompiledGraph, Fingerprint, ForkOptions, GraphId, GraphResolver, NodeContext, NodeError,
    Producer, Question, QueuedExecutor, ResolveError, RunId, RunRequest, Runner, SessionId,
    Shutdown, SignalOptions, State, StateGraph, Store, Update, Worker, WorkerConfig,
};
use holdpoint_testkit::{Fault, FaultyStore};
use serde_json::json;
use tokio::sync::Notify;

use super::{Call, Input};
use crate::library::{Answer, Bench, answered, refused};

pub(crate) fn make(name: &str) -> Option<Input> {
    let call: Call = match name {
        "queue_at_its_depth" => |bench| Box::pin(full_queue(bench)),
        "store_that_is_away" => |bench| Box::pin(away(bench)),
        "reply_that_is_lost" => |bench| Box::pin(lost_reply(bench)),
        "reply_that_is_lost_once" => |bench| Box::pin(lost_once(bench)),
        "resolver_that_panics" => |bench| Box::pin(resolved(bench, Resolver::Panics)),
        "resolver_of_another_graph" => |bench| Box::pin(resolved(bench, Resolver::OtherGraph)),
        "result_after_the_cancel" => |bench| Box::pin(late_result(bench)),
        "redrive_of_a_running_run" => |bench| Box::pin(redrive_running(bench)),
        "redrive_of_a_parked_run" => |bench| Box::pin(redrive(bench, "parked")),
        "redrive_of_a_completed_run" => |bench| Box::pin(redrive(bench, "done")),
        "redrive_twice" => |bench| Box::pin(redrive_twice(bench)),
        "cancel_of_a_completed_run" => |bench| Box::pin(cancel_ended(bench)),
        "edit_with_an_old_number" => |bench| Box::pin(edit_old(bench)),
        "edit_of_a_run_that_ended" => |bench| Box::pin(edit_ended(bench)),
        "fork_behind_the_end" => |bench| Box::pin(fork_behind(bench)),
        "deletion_of_a_busy_session" => |bench| Box::pin(delete_busy(bench)),
        "run_of_another_namespace" => |bench| Box::pin(foreign_run(bench)),
        "node_that_asks_in_another_order" => |bench| Box::pin(other_order(bench)),
        _ => return None,
    };
    Some(Input::Call(call))
}

fn run(id: &str) -> RunId {
    RunId::new(id).unwrap()
}

/// The store of a bench behind a plan for the calls of one name.
fn faulty(bench: &Bench, name: &'static str, fault: Fault, times: u64) -> Producer {
    let plan = move |call: &'static str, number| match call == name && number <= times {
        true => fault,
        false => Fault::Pass,
    };
    let store = FaultyStore::new(Arc::clone(bench.producer.store()), plan);
    Producer::new(Arc::new(store)).with_patience(Duration::from_millis(200))
}

async fn full_queue(bench: &Bench) -> Answer {
    let producer = Producer::new(Arc::clone(bench.producer.store())).with_queue_depth_max(0);
    answered(producer.enqueue(&RunRequest::new("lin").queue("narrow")).await)
}

async fn away(bench: &Bench) -> Answer {
    let producer = faulty(bench, "enqueue", Fault::Refuse, u64::MAX);
    answered(producer.enqueue(&RunRequest::new("lin")).await)
}

/// The write happened and nobody heard of it: the same request again gives the same run.
async fn lost_reply(bench: &Bench) -> Answer {
    let request = RunRequest::new("lin").request("lost-for-good");
    let lost = faulty(bench, "enqueue", Fault::LoseReply, u64::MAX).enqueue(&request).await;
    let again = bench.producer.enqueue(&request).await.unwrap();
    assert_eq!((again.run.as_str(), again.created), ("lost-for-good", true));
    answered(lost)
}

async fn lost_once(bench: &Bench) -> Answer {
    let producer = faulty(bench, "enqueue", Fault::LoseReply, 1);
    answered(producer.enqueue(&RunRequest::new("lin").request("lost-once")).await)
}

enum Resolver {
    Panics,
    OtherGraph,
}

impl GraphResolver for Resolver {
    fn resolve(&self, _: &GraphId, _: Option<&Fingerprint>) -> Result<CompiledGraph, ResolveError> {
        match self {
            Self::Panics => panic!("no such table"),
            Self::OtherGraph => Ok(one("elsewhere", |_, _| async { Ok(()) })),
        }
    }
}

/// A graph of the one node `n`.
fn one<F, Fut>(id: &str, node: F) -> CompiledGraph
where
    F: Fn(NodeContext, State) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), NodeError>> + Send + 'static,
{
    let graph = StateGraph::new(id).add_node("n", node);
    graph.set_entry_point("n").set_finish_point("n").compile().unwrap()
}

/// A worker of the queue `bench` for one graph.
fn worker(store: &Arc<dyn Store>, graph: CompiledGraph) -> Worker {
    let config = WorkerConfig {
        queues: vec!["bench".parse().unwrap()],
        exit_when_idle: true,
        ..WorkerConfig::default()
    };
    Worker::new(Arc::clone(store), vec![graph], config).unwrap()
}

async fn resolved(bench: &Bench, resolver: Resolver) -> Answer {
    let store = bench.producer.store();
    let request = RunRequest::new("resolved").queue("bench").allow_unknown();
    let receipt = bench.producer.enqueue(&request).await.unwrap();
    let graph = one("resolved", |_, _| async { panic!("nothing may run") });
    let executor = QueuedExecutor::new(Arc::clone(store), Arc::new(resolver));
    Box::pin(worker(store, graph).with_executor(executor).run(Shutdown::new())).await;
    bench.ended(&receipt.run).await
}

/// Runs `act` while a node of a new run is being executed, then lets the node end.
async fn while_running<T>(
    bench: &Bench,
    graph: &str,
    act: impl AsyncFnOnce(&RunId) -> T,
) -> (T, RunId) {
    let (inside, go) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (entered, may_end) = (Arc::clone(&inside), Arc::clone(&go));
    let held = one(graph, move |_, _| {
        let (entered, may_end) = (Arc::clone(&entered), Arc::clone(&may_end));
        async move {
            entered.notify_one();
            may_end.notified().await;
            Ok(())
        }
    });
    let request = RunRequest::new(graph).queue("bench").allow_unknown();
    let receipt = bench.producer.enqueue(&request).await.unwrap();
    let working = tokio::spawn(worker(bench.producer.store(), held).run(Shutdown::new()));
    inside.notified().await;
    let done = act(&receipt.run).await;
    go.notify_one();
    working.await.unwrap();
    (done, receipt.run)
}

async fn late_result(bench: &Bench) -> Answer {
    let cancel = async |run: &RunId| bench.producer.cancel(run, "ann").await.unwrap();
    let (_, run) = while_running(bench, "late", cancel).await;
    bench.ended(&run).await
}

async fn redrive_running(bench: &Bench) -> Answer {
    let act = async |run: &RunId| bench.producer.redrive(run, None, "ann").await;
    answered(while_running(bench, "held", act).await.0)
}

async fn redrive(bench: &Bench, id: &str) -> Answer {
    answered(bench.producer.redrive(&run(id), None, "ann").await)
}

/// The second of two is no error, and adds nothing.
async fn redrive_twice(bench: &Bench) -> Answer {
    let failed = run("failed");
    bench.producer.redrive(&failed, None, "ann").await.unwrap();
    let before = bench.place.dump();
    let again = bench.producer.redrive(&failed, None, "bob").await;
    assert!(before == bench.place.dump(), "the second redrive stored something");
    answered(again)
}

async fn cancel_ended(bench: &Bench) -> Answer {
    answered(bench.producer.cancel(&run("done"), "ann").await)
}

async fn edit_old(bench: &Bench) -> Answer {
    answered(bench.producer.edit(&run("parked"), &json!({ "x": 1 }), 0, "ann").await)
}

async fn edit_ended(bench: &Bench) -> Answer {
    let newest = bench.producer.events(&run("done"), 0).await.unwrap().len() as u64 - 1;
    answered(bench.producer.edit(&run("done"), &json!({ "x": 1 }), newest, "ann").await)
}

async fn fork_behind(bench: &Bench) -> Answer {
    let at_99 = ForkOptions { at_seq: 99, ..ForkOptions::default() };
    answered(bench.producer.fork(&run("done"), &at_99).await)
}

async fn delete_busy(bench: &Bench) -> Answer {
    let session = SessionId::new("busy").unwrap();
    answered(bench.producer.delete_session(&session, None).await)
}

/// The same words as for a run that is nowhere: nobody learns what others have.
async fn foreign_run(bench: &Bench) -> Answer {
    let theirs = Producer::new(bench.place.store_in("other").await);
    let answer = |id: &str| SignalOptions::run(id).approve();
    let foreign = refused(&theirs.signal(&answer("parked")).await.unwrap_err());
    let nowhere = refused(&theirs.signal(&answer("nowhere")).await.unwrap_err());
    assert_eq!(foreign.text.replace("parked", ""), nowhere.text.replace("nowhere", ""));
    foreign
}

/// Asks `first` then `second`; once an answer is there, the other way round.
async fn other_order(bench: &Bench) -> Answer {
    let calls = Arc::new(AtomicU32::new(0));
    let graph = StateGraph::new("order")
        .add_node("n", move |ctx: NodeContext, _: State| {
            let keys = match calls.fetch_add(1, Ordering::Relaxed) {
                0 => ["first", "second"],
                _ => ["second", "first"],
            };
            async move {
                let mut update = Update::new();
                for key in keys {
                    update = update.set(key, ctx.ask(key, Question::new(key)).await?.value);
                }
                Ok(update)
            }
        })
        .set_entry_point("n")
        .set_finish_point("n")
        .compile()
        .unwrap();
    let session = SessionId::new("order").unwrap();
    let store = || Arc::clone(bench.producer.store());
    let parked = Runner::new(graph.clone(), store()).run(session.clone(), State::new()).await;
    let run = parked.unwrap().run_id;
    let view = bench.producer.get(&run).await.unwrap();
    let question = view.interrupts[0].interrupt.clone();
    let answer = json!("mine");
    Runner::new(graph, store()).resume_with(session, question, answer, "ann").await.unwrap();
    let state = bench.producer.get(&run).await.unwrap().state;
    assert!(!serde_json::to_string(&state).unwrap().contains("mine"), "the answers were swapped");
    bench.ended(&run).await
}
