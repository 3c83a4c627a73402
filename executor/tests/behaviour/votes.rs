//! Questions that need several people, edits by an answer, and reminders, over each store.

use std::{collections::BTreeSet, sync::Arc, time::Duration};

use holdpoint_graph::{
    Ballot, CompiledGraph, Event, Gate, Interrupt, NodeContext, NodeOptions, Question, RequestId,
    RunId, RunStatus, State, StateGraph, Update, limits,
};
use holdpoint_producer::{Producer, SignalOptions};
use holdpoint_storage::{
    Address, QuestionFilter, Random, SignalRecord, SignalReply, SignalRequest,
};
use serde_json::{Value, json};

use crate::bench::{Bench, on_each_store};

fn gated(question: Question) -> CompiledGraph {
    let pay = async |_: NodeContext, _: State| Ok(Update::new().set("paid", true));
    StateGraph::new("g")
        .add_node_with("pay", NodeOptions::new().gate(Gate::new("pay", question)), pay)
        .set_entry_point("pay")
        .set_finish_point("pay")
        .compile()
        .unwrap()
}

/// A vote as a producer sends it: checked against the question as it is stored.
async fn vote(bench: &Bench, run: &RunId, by: &str, answer: Value) -> SignalReply {
    let progress = bench.progress(run).await;
    let open: Interrupt = match progress.open().next() {
        Some(open) => open.clone(),
        None => return SignalReply::NoQuestion,
    };
    let request: RequestId = Random.request_id();
    let record = SignalRecord {
        answer: answer.clone(),
        by: by.to_owned(),
        at_ms: bench.store.now_ms().await.unwrap(),
        comment: None,
        groups: Vec::new(),
        from: None,
        request: request.to_string(),
    };
    let given = holdpoint_graph::Answer::new(answer, by, 0);
    let ballot: Option<Ballot> = open.ballot(&given);
    let signal = SignalRequest {
        run: run.clone(),
        request,
        address: Address::Interrupt(open.interrupt),
        args_hash: Some(open.args_hash),
        ballot,
        record: record.encode(),
    };
    bench.store.signal(&signal).await.unwrap()
}

fn approve() -> Value {
    json!({ "approve": true })
}

#[tokio::test]
async fn votes_are_recorded_one_by_one_and_the_last_decides() {
    on_each_store(async |mut bench| {
        bench.add(gated(Question::new("Pay {amount}?").quorum(2)));
        let run = bench.enqueue("g", json!({ "amount": 5 })).await;
        bench.drain().await;
        assert_eq!(bench.status(&run).await, RunStatus::Parked);
        vote(&bench, &run, "ann", approve()).await;
        bench.drain().await;
        assert_eq!(bench.status(&run).await, RunStatus::Parked, "one of two");
        let open = bench.progress(&run).await.open().next().cloned().unwrap();
        assert_eq!(open.votes.first().map(|vote| vote.by.as_str()), Some("ann"));
        assert_eq!(vote(&bench, &run, "ann", approve()).await, SignalReply::Voted);
        vote(&bench, &run, "bob", approve()).await;
        bench.drain().await;
        assert_eq!(bench.status(&run).await, RunStatus::Completed);
        assert_eq!(bench.count(&run, "vote_cast").await, 1);
        assert_eq!(bench.count(&run, "interrupt_answered").await, 1);
    })
    .await;
}

/// 50 people vote at once on a question that needs two: two votes are taken, one resume follows,
/// and everything that was acknowledged stands in the journal.
#[tokio::test]
async fn fifty_voters_at_once_make_one_resume() {
    on_each_store(async |mut bench| {
        bench.add(gated(Question::new("Pay?").quorum(2)));
        let run = bench.enqueue("g", json!({})).await;
        bench.drain().await;
        let bench = Arc::new(bench);
        let votes = (0..50).map(|n| {
            let (bench, run) = (Arc::clone(&bench), run.clone());
            tokio::spawn(async move {
                let who = format!("voter-{n}");
                (vote(&bench, &run, &who, approve()).await, who)
            })
        });
        let mut taken = BTreeSet::new();
        for voted in votes.collect::<Vec<_>>() {
            let (said, who) = voted.await.unwrap();
            if let SignalReply::Delivered { .. } = said {
                taken.insert(who);
            }
        }
        bench.drain().await;
        assert_eq!(bench.status(&run).await, RunStatus::Completed);
        assert_eq!(taken.len(), 2, "{taken:?}");
        let events = bench.events(&run).await;
        let recorded = events.iter().filter_map(|event| match event {
            Event::VoteCast { vote, .. } => Some(vote.by.clone()),
            Event::InterruptAnswered { answer, .. } => Some(answer.by.clone()),
            _ => None,
        });
        assert_eq!(recorded.collect::<BTreeSet<_>>(), taken);
    })
    .await;
}

#[tokio::test]
async fn an_answer_may_edit_what_the_gate_allows() {
    on_each_store(async |mut bench| {
        bench.add(gated(Question::new("Pay {amount}?").about(["amount"]).edits(["amount"])));
        let run = bench.enqueue("g", json!({ "amount": 5 })).await;
        bench.drain().await;
        let edit = json!({ "choice": "edit", "set": { "amount": 3 } });
        vote(&bench, &run, "ann", edit).await;
        bench.drain().await;
        assert_eq!(bench.status(&run).await, RunStatus::Completed);
        assert_eq!(bench.state(&run).await.get("amount"), Some(&json!(3)));
    })
    .await;
}

/// An edit that made the state too large was acknowledged, and dropped when the run took it: the
/// question stayed open and nobody knew. It is refused before it is stored.
#[tokio::test]
async fn an_edit_that_makes_the_state_too_large_is_refused_at_once() {
    on_each_store(async |mut bench| {
        let large = "x".repeat(limits::STATE_BYTES_MAX - 2_000);
        let fill = move |_: NodeContext, _: State| {
            let large = large.clone();
            async move { Ok(Update::new().set("large", large)) }
        };
        let gate = Gate::new("pay", Question::new("Pay?").about(["amount"]).edits(["amount"]));
        let pay = async |_: NodeContext, _: State| Ok(Update::new().set("paid", true));
        let graph = StateGraph::new("g")
            .add_node("fill", fill)
            .add_node_with("pay", NodeOptions::new().gate(gate), pay)
            .add_edge("fill", "pay")
            .set_entry_point("fill")
            .set_finish_point("pay");
        bench.add(graph.compile().unwrap());
        let run = bench.enqueue("g", json!({ "amount": 5 })).await;
        bench.drain().await;
        let producer = Producer::new(bench.store.clone());
        let edit = |amount: Value| {
            let answer = json!({ "choice": "edit", "set": { "amount": amount } });
            SignalOptions::run(run.as_str()).gate("pay").answer(answer)
        };
        let refused = producer.signal(&edit(json!("x".repeat(3_000)))).await.unwrap_err();
        assert_eq!((refused.code().as_str(), refused.field()), ("E_TOO_LARGE", "answer/set"));
        assert!(refused.to_string().contains("the limit is 4194304"), "{refused}");
        assert_eq!(bench.store.inbox(&run).await.unwrap(), []);
        assert_eq!(bench.status(&run).await, RunStatus::Parked);
        producer.signal(&edit(json!("x".repeat(1_000)))).await.unwrap();
        bench.drain().await;
        assert_eq!(bench.status(&run).await, RunStatus::Completed);
    })
    .await;
}

#[tokio::test]
async fn a_parked_run_wakes_to_remind_and_parks_again() {
    on_each_store(async |mut bench| {
        let question = Question::new("Pay?")
            .assignee("ann")
            .remind(Duration::from_millis(1), ["boss"])
            .deadline(Duration::from_secs(3_600), approve());
        bench.add(gated(question));
        let run = bench.enqueue("g", json!({})).await;
        let reminded = async {
            while bench.count(&run, "interrupt_reminded").await == 0 {
                bench.drain().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(20), reminded).await.unwrap();
        bench.drain().await;
        assert_eq!(bench.status(&run).await, RunStatus::Parked);
        let open = bench.progress(&run).await.open().next().cloned().unwrap();
        assert_eq!((open.assignees, open.reminders.len()), (vec!["ann".into(), "boss".into()], 0));
        let stored =
            bench.store.questions(&QuestionFilter::of_run(&run), None, 10).await.unwrap().rows;
        let stored: Interrupt = serde_json::from_slice(&stored.first().unwrap().body).unwrap();
        assert_eq!(stored.assignees, ["ann", "boss"], "the list of questions shows it too");
    })
    .await;
}

/// A vote that was taken while the deadline decided stands in the record and changes nothing.
#[tokio::test]
async fn a_vote_that_comes_with_the_deadline_is_recorded() {
    on_each_store(async |mut bench| {
        let soon = Duration::from_millis(1);
        bench.add(gated(Question::new("Pay?").quorum(3).deadline(soon, approve())));
        let run = bench.enqueue("g", json!({})).await;
        // Nobody has parked it yet: the question opens, and the vote meets its deadline.
        let claimed = bench.claim("w1").await.unwrap();
        bench.executor().execute(claimed).await;
        let voted = vote(&bench, &run, "ann", approve()).await;
        bench.drain().await;
        assert_eq!(bench.status(&run).await, RunStatus::Completed);
        assert!(matches!(voted, SignalReply::Delivered { is_vote: true, .. }), "{voted:?}");
        assert_eq!(bench.count(&run, "vote_cast").await, 1);
        assert_eq!(bench.store.inbox(&run).await.unwrap(), []);
    })
    .await;
}
