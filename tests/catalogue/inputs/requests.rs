//! Requests, answers and settings that are refused before anything is stored.

use std::time::Duration;

use holdpoint::{IfBusy, RetryPolicy, RunRequest, SignalOptions, WorkerConfig};
use serde_json::{Value, json};

use super::Input;

const DAY: Duration = Duration::from_secs(86_400);

pub(crate) fn make(name: &str) -> Option<Input> {
    request(name)
        .map(|request| Input::Request(Box::new(request)))
        .or_else(|| batch(name).map(Input::Batch))
        .or_else(|| signal(name).map(|signal| Input::Signal(Box::new(signal))))
        .or_else(|| settings(name))
}

/// A list of lists, so many levels deep.
pub(crate) fn deep(levels: usize) -> Value {
    (1..levels).fold(json!([]), |inner, _| json!([inner]))
}

fn lin() -> RunRequest {
    RunRequest::new("lin")
}

fn request(name: &str) -> Option<RunRequest> {
    Some(match name {
        "input_200_deep" => lin().input(json!({ "a": deep(200) })),
        "input_over_1_mib" => lin().input(json!({ "a": "x".repeat(1_048_569) })),
        "input_list" => lin().input(json!([1])),
        "graph_of_300_bytes" => RunRequest::new("g".repeat(300)),
        "graph_with_braces" => RunRequest::new("a{b}"),
        "graph_unknown" => RunRequest::new("lim"),
        "graph_unknown_allowed" => RunRequest::new("lim").run("unknown-too").allow_unknown(),
        "run_with_colon" => lin().run("a:b"),
        "session_with_slash" => lin().session("a/b"),
        "priority_999" => lin().priority(999),
        "priority_below_0" => lin().priority(-1),
        "delay_of_10_years" => lin().delay(DAY * 3_650),
        "delay_beyond_counting" => lin().delay(Duration::MAX),
        "delay_and_time" => lin().delay(DAY).at_ms(1),
        "expiry_passed" => lin().expires_at_ms(1),
        "expiry_before_start" => lin().delay(DAY).expires_in(DAY / 2),
        "deadline_passed" => lin().deadline_at_ms(1),
        "deadline_before_start" => lin().delay(DAY).deadline_in(DAY / 2),
        "time_at_the_end_of_counting" => lin().at_ms(i64::MAX),
        "no_steps" => lin().max_steps(0),
        "a_billion_steps" => lin().max_steps(1_000_000_000),
        "budget_of_no_steps" => lin().budget_steps(0),
        "budget_beyond_counting" => lin().budget_time(Duration::MAX),
        "stale_at_once" => lin().stale_after(Duration::ZERO),
        "17_tags" => (0..17).fold(lin(), |lin, n| lin.tag(format!("t{n}"), "v")),
        "tag_with_line_break" => lin().tag("t", "a\nb"),
        "key_empty" => lin().key(""),
        "key_of_10_kb" => lin().key("k".repeat(10_000)),
        "key_with_other_payload" => {
            RunRequest::new("ask").session("busy").key("taken").input(json!({ "x": 1 }))
        }
        "run_taken" => lin().run("done"),
        "session_busy" => RunRequest::new("ask").session("busy").if_busy(IfBusy::Reject),
        "session_of_other_graph" => lin().session("busy"),
        "request_of_other_run" => lin().request("a:b"),
        _ => return None,
    })
}

fn batch(name: &str) -> Option<Vec<RunRequest>> {
    Some(match name {
        "batch_with_bad_7777th" => {
            let priority = |n: usize| if n == 7_776 { 99 } else { 4 };
            (0..10_000).map(|n| lin().priority(priority(n))).collect()
        }
        "batch_of_10001" => (0..10_001).map(|_| lin()).collect(),
        "batch_of_twins" => vec![lin().run("twin"), lin().run("twin")],
        "batch_with_unknown_graph" => vec![lin(), RunRequest::new("lim")],
        _ => return None,
    })
}

fn signal(name: &str) -> Option<SignalOptions> {
    let parked = || SignalOptions::run("parked");
    Some(match name {
        "answer_to_nobody" => SignalOptions::run("nope").approve(),
        "answer_to_unknown_session" => SignalOptions::session("nope").approve(),
        "answer_to_ended_run" => SignalOptions::run("done").approve(),
        "answer_missing" => parked(),
        "answer_that_does_not_fit" => parked().answer(json!({ "approve": "yes" })),
        "answer_of_10_mb" => parked().answer("x".repeat(10_000_000)),
        "answer_200_deep" => SignalOptions::run("open").answer(deep(200)),
        "answer_by_a_long_name" => parked().approve().by("n".repeat(5_000)),
        "answer_to_unknown_gate" => parked().gate("nope").approve(),
        "answer_to_unknown_interrupt" => parked().interrupt("nope").approve(),
        "answer_about_something_else" => parked().args_hash("other").approve(),
        "answer_that_fits_two" => SignalOptions::run("two").answer(1),
        "answer_with_used_key" => SignalOptions::run("answered").key("click").reject(),
        "answer_repeated" => SignalOptions::run("answered").key("click").approve().by("ann"),
        "answer_null" => SignalOptions::run("open").answer(Value::Null),
        _ => return None,
    })
}

fn settings(name: &str) -> Option<Input> {
    let worker = |change: fn(&mut WorkerConfig)| {
        let mut config = WorkerConfig::default();
        change(&mut config);
        Some(Input::Worker(Box::new(config)))
    };
    let retry = |attempts, base, factor, cap| {
        Some(Input::Made(RetryPolicy::new(attempts, base, factor, cap).map(drop)))
    };
    let second = Duration::from_secs(1);
    match name {
        "no_concurrency" => worker(|config| config.concurrency = 0),
        "concurrency_of_a_million" => worker(|config| config.concurrency = 1_000_000),
        "lease_of_1_ms" => worker(|c| *c = WorkerConfig::with_lease(Duration::from_millis(1))),
        "lease_of_10_days" => worker(|config| *config = WorkerConfig::with_lease(DAY * 10)),
        "lease_under_3_renewals" => worker(|config| config.renew = Duration::from_secs(3)),
        "hold_longer_than_a_lease" => worker(|config| config.hold_after = config.lease),
        "tick_longer_than_half_a_hold" => worker(|config| config.tick = config.hold_after),
        "no_queue" => worker(|config| config.queues.clear()),
        "no_attempts" => retry(0, second, 2.0, second),
        "a_billion_attempts" => retry(1_000_000_000, second, 2.0, second),
        "factor_that_is_no_number" => retry(3, second, f64::NAN, second),
        "cap_of_10_days" => retry(3, second, 2.0, DAY * 10),
        _ => None,
    }
}
