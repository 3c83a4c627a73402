//! What must hold when everything is over, whoever crashed where: told from the ledger, which
//! knows what really happened, and from the store.

use std::collections::BTreeSet;

use holdpoint::{Event, RunId};
use holdpoint_testkit::{LedgerEntry, verified_journal};

use crate::{graph::Version, stage::Stage};

/// Checks the runs, and that there are no others.
pub(crate) async fn check(stage: &Stage, runs: &[RunId], version: Version) {
    let entries = stage.scratch.ledger().entries();
    for run in runs {
        let records = verified_journal(&*stage.store, run).await;
        let journal: Vec<(u64, &Event)> =
            records.iter().map(|record| (record.epoch, &record.event)).collect();
        let entries: Vec<&LedgerEntry> =
            entries.iter().filter(|entry| entry.run == run.as_str()).collect();
        payment_is_made_once(&journal, &entries);
        mail_has_one_key(&entries);
        nothing_runs_after_its_commit(&journal, &entries);
        each_answer_counts_once(&journal);
        let state = stage.producer.state_at(run, None).await.expect("the run has a state");
        assert_eq!(state.get("path"), Some(&version.nodes().to_vec().into()), "{state:?}");
        let inbox = stage.store.inbox(run).await.expect("the store answers");
        assert!(inbox.is_empty(), "answers are left over: {inbox:?}");
    }
    store_is_whole(stage, runs.len()).await;
}

/// The unsafe effect: at most once, and when its outcome was unknown somebody was asked.
fn payment_is_made_once(journal: &[(u64, &Event)], entries: &[&LedgerEntry]) {
    let calls = entries.iter().filter(|entry| entry.effect == "call").count();
    assert!(calls <= 1, "the unsafe effect was called {calls} times");
    let is_pay = |event: &Event| match event {
        Event::NodeStarted { task, .. } => task.node == "pay",
        _ => false,
    };
    let started = journal.iter().filter(|(_, event)| is_pay(event)).count();
    assert_eq!(started, 1, "the unsafe node was begun again");
    let is_asked = journal.iter().any(|(_, event)| match event {
        Event::InterruptOpened { interrupt } => interrupt.gate.is_none(),
        _ => false,
    });
    assert!(calls == 1 || is_asked, "the unsafe effect was lost and nobody was asked");
    let is_done = entries.iter().any(|entry| entry.node == "pay" && entry.effect == "done");
    let is_committed = journal.iter().any(|(_, event)| match event {
        Event::NodeCompleted { task, .. } => task.node == "pay",
        _ => false,
    });
    assert!(is_asked || (is_done && is_committed), "the payment has no end");
    assert!(!(is_asked && is_committed), "asked about a payment that was committed");
}

/// The idempotent effect: however often, under one key.
fn mail_has_one_key(entries: &[&LedgerEntry]) {
    let keys: BTreeSet<&str> =
        entries.iter().filter_map(|entry| entry.effect.strip_prefix("mail ")).collect();
    assert_eq!(keys.len(), 1, "{keys:?}");
}

/// No owner runs a node after the commit that ended it, and none is committed twice.
fn nothing_runs_after_its_commit(journal: &[(u64, &Event)], entries: &[&LedgerEntry]) {
    let mut ended = BTreeSet::new();
    for (epoch, event) in journal {
        let Event::NodeCompleted { task, .. } = event else { continue };
        assert!(ended.insert(&task.node), "{} ended twice", task.node);
        let of_node = |entry: &&&LedgerEntry| entry.node == task.node;
        let mine: Vec<&LedgerEntry> = entries.iter().filter(of_node).copied().collect();
        let is_end = |entry: &&LedgerEntry| entry.effect == "done" && entry.epoch == *epoch;
        let end = mine.iter().rposition(is_end);
        let end = end.unwrap_or_else(|| panic!("{} was committed and has no end", task.node));
        let late = mine[end..].iter().find(|entry| entry.effect == "start");
        assert!(late.is_none(), "ran after its commit: {late:?}");
    }
}

/// Each question that was asked has one answer.
fn each_answer_counts_once(journal: &[(u64, &Event)]) {
    let mut asked = BTreeSet::new();
    let mut answered = BTreeSet::new();
    for (_, event) in journal {
        match event {
            Event::InterruptOpened { interrupt } => {
                assert!(asked.insert(&interrupt.interrupt), "asked twice: {interrupt:?}");
            }
            Event::InterruptAnswered { interrupt, .. } => {
                assert!(answered.insert(interrupt), "answered twice: {interrupt}");
            }
            _ => {}
        }
    }
    assert_eq!(asked, answered);
}

/// Nothing is lost, nothing is doubled, and the store's own check finds nothing bad.
async fn store_is_whole(stage: &Stage, runs: usize) {
    let stats = stage.store.stats().await.expect("the store answers");
    let total: u64 = stats.counts.iter().map(|(_, count)| count).sum();
    let ended: u64 =
        stats.counts.iter().filter(|(status, _)| status.is_terminal()).map(|(_, n)| n).sum();
    assert_eq!((total, ended), (runs as u64, runs as u64), "{stats:?}");
    assert_eq!((stats.open_questions, stats.lanes.len()), (0, 0), "{stats:?}");
    for finding in stage.store.check().await.expect("the store answers") {
        let shown = serde_json::to_value(&finding).expect("a finding can be shown");
        assert_ne!(shown["level"], "bad", "{shown}");
    }
}
