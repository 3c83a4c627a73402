//! Every pair of state and event, against the table in `docs/life.md`.

use super::{End, LeaseTerm, Life, LifeError, Pair, RunStatus};
use crate::{ReasonCode, WorkerId};

const NOW_MS: i64 = 1_000;
const LATER_MS: i64 = 2_000;

type Move = fn(Life) -> Result<Life, LifeError>;

fn pair() -> Pair {
    Pair { epoch: 7, nonce: "own".to_owned() }
}

fn stale(epoch: u64, nonce: &str) -> Pair {
    Pair { epoch, nonce: nonce.to_owned() }
}

fn lease(deadline_ms: i64) -> LeaseTerm {
    let worker = WorkerId::new("w1").expect("it is an id");
    LeaseTerm { pair: pair(), worker, deadline_ms }
}

/// All states; `parked` once without and once with a timer.
fn states() -> [(&'static str, Life); 8] {
    [
        ("scheduled", Life::Scheduled { until_ms: LATER_MS }),
        ("queued", Life::Queued),
        ("running", Life::Running { lease: lease(LATER_MS) }),
        ("parked", Life::Parked { wake_at_ms: None }),
        ("parked, timer", Life::Parked { wake_at_ms: Some(LATER_MS) }),
        ("completed", Life::Completed),
        ("failed", Life::Failed { reason: ReasonCode::NodeError }),
        ("cancelled", Life::Cancelled),
    ]
}

/// All events; one that needs the owner's pair comes with it, and a stale one once for all.
fn events() -> [(&'static str, Move); 23] {
    [
        ("claim", |life| life.claim(lease(LATER_MS))),
        ("renew", |life| life.renew(&pair(), 9_000)),
        ("park", |life| life.park(&pair(), None)),
        ("park until later", |life| life.park(&pair(), Some(LATER_MS))),
        ("reschedule, later", |life| life.reschedule(&pair(), LATER_MS, NOW_MS)),
        ("reschedule, now", |life| life.reschedule(&pair(), NOW_MS, NOW_MS)),
        ("release", |life| life.release(&pair())),
        ("finish: completed", |life| life.finish(&pair(), End::Completed)),
        ("finish: failed", |life| life.finish(&pair(), End::Failed(ReasonCode::CrashLoop))),
        ("finish: cancelled", |life| life.finish(&pair(), End::Cancelled)),
        ("renew, stale", |life| life.renew(&stale(6, "own"), 9_000)),
        ("park, stale", |life| life.park(&stale(7, "other"), None)),
        ("reschedule, stale", |life| life.reschedule(&stale(8, "own"), LATER_MS, NOW_MS)),
        ("release, stale", |life| life.release(&stale(6, "other"))),
        ("finish, stale", |life| life.finish(&stale(7, ""), End::Completed)),
        ("lose, back later", |life| life.lose(LATER_MS, NOW_MS)),
        ("lose, back now", |life| life.lose(NOW_MS, NOW_MS)),
        ("fire, too early", |life| life.fire(LATER_MS - 1)),
        ("fire, due", |life| life.fire(LATER_MS)),
        ("start now", Life::start_now),
        ("signal", Life::signal),
        ("cancel", Life::cancel),
        ("redrive", Life::redrive),
    ]
}

fn word(result: &Result<Life, LifeError>) -> &'static str {
    match result {
        Ok(life) => life.status().as_str(),
        Err(LifeError::Illegal { .. }) => "–",
        Err(LifeError::Fenced) => "fenced",
        Err(LifeError::NotDue { .. }) => "not due",
    }
}

fn table() -> String {
    let row = |cells: Vec<&str>| format!("| {} |\n", cells.join(" | "));
    let heads = std::iter::once("event").chain(states().map(|(name, _)| name));
    let mut table = row(heads.collect());
    table.push_str(&row(vec!["---"; states().len() + 1]));
    for (event, apply) in events() {
        let words = states().map(|(_, life)| word(&apply(life)));
        table.push_str(&row(std::iter::once(event).chain(words).collect()));
    }
    table
}

#[test]
fn every_pair_is_in_the_docs() {
    let docs = include_str!("../../../docs/life.md");
    let table = table();
    assert!(docs.contains(&table), "docs/life.md must hold this table:\n\n{table}");
}

#[test]
fn every_move_keeps_what_it_must() {
    let mut moves = String::new();
    for (event, apply) in events() {
        for (state, life) in states() {
            match apply(life) {
                Ok(after) => moves.push_str(&format!("{event} [{state}] -> {after:?}\n")),
                Err(LifeError::Illegal { .. } | LifeError::Fenced | LifeError::NotDue { .. }) => {}
            }
        }
    }
    insta::assert_snapshot!(moves);
}

#[test]
fn refusals_say_state_and_event() {
    let shown = |result: Result<Life, LifeError>| result.expect_err("it is refused").to_string();
    let said = [
        shown(Life::Completed.claim(lease(LATER_MS))),
        shown(Life::Queued.release(&pair())),
        shown(Life::Scheduled { until_ms: LATER_MS }.fire(NOW_MS)),
        shown(Life::Parked { wake_at_ms: None }.redrive()),
    ];
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn an_ended_run_only_moves_by_redrive() {
    for (state, life) in states() {
        if !life.status().is_terminal() {
            continue;
        }
        for (event, apply) in events() {
            let may_move = (state, event) == ("failed", "redrive");
            let stays = apply(life.clone()).is_ok_and(|after| after == life);
            assert!(may_move || stays || apply(life.clone()).is_err(), "{event} of a {state} run");
        }
    }
}

#[test]
fn only_a_claim_makes_a_run_running() {
    for (state, life) in states() {
        for (event, apply) in events() {
            let Ok(after) = apply(life.clone()) else { continue };
            let begins = after.status() == RunStatus::Running && life.status() != after.status();
            assert!(!begins || event == "claim", "{event} of a {state} run");
        }
    }
}

#[test]
fn words_and_states_are_one_to_one() {
    for status in RunStatus::ALL {
        assert_eq!(RunStatus::from_word(status.as_str()), Some(status));
    }
    assert_eq!(RunStatus::from_word("paused"), Some(RunStatus::Parked));
    assert_eq!(RunStatus::from_word("Running"), None);
    assert_eq!(RunStatus::ALL.iter().filter(|status| status.is_terminal()).count(), 3);
}
