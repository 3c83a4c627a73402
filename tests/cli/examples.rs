//! The examples do what they say.

use holdpoint_testkit::{Program, Scratch};
use serde_json::json;

use crate::world::{ONE_SHOT, RUNS};

/// Runs an example in a folder of its own, on the store that it takes by itself.
fn example(name: &str, scratch: &Scratch) -> Program {
    Program::example(name).current_dir(scratch.path())
}

#[test]
fn order_approval_runs_the_orders_and_parks_the_big_ones() {
    let scratch = Scratch::new();
    let first = example("order_approval", &scratch).run(RUNS).expect_code(0);
    for line in [
        "parked: order-1002, order-1004",
        "completed: order-1001, order-1003",
        "failed: order-1005",
        "? approval: Charge 863.60 EUR to Workshop Nord for order-1002?",
        "cargo run -q --example order_approval -- approve order-1002 --interrupt",
    ] {
        assert!(first.stdout.contains(line), "{line:?} is missing in\n{}", first.stdout);
    }
    let approve = example("order_approval", &scratch).args(["approve", "order-1002"]);
    drop(approve.run(ONE_SHOT).expect_code(0));
    let reject = example("order_approval", &scratch).args(["reject", "order-1004"]);
    drop(reject.run(ONE_SHOT).expect_code(0));
    let second = example("order_approval", &scratch).run(RUNS).expect_code(0);
    assert!(second.stdout.contains("order-1001 is known"), "{}", second.stdout);
    let summary = "completed: order-1001, order-1002, order-1003, order-1004";
    assert!(second.stdout.contains(summary), "{}", second.stdout);
    let state = |run: &str| {
        let args = ["--json", "runs", "state", run];
        example("order_approval", &scratch).args(args).run(ONE_SHOT).expect_code(0).json()
    };
    assert_eq!(state("order-1004")["refused"], true);
    assert!(state("order-1002")["approved_by"].is_string());
    assert!(state("order-1003").get("approved_by").is_none(), "a small one asks nobody");
}

fn result_of(name: &str, input: &str) -> serde_json::Value {
    let scratch = Scratch::new();
    let enqueue = example(name, &scratch).args(["--json", "enqueue", name, "--input", input]);
    let run = enqueue.run(ONE_SHOT).expect_code(0).json();
    drop(example(name, &scratch).args(["worker", "--exit-when-idle"]).run(RUNS).expect_code(0));
    let run = run["run"].as_str().unwrap();
    example(name, &scratch).args(["--json", "runs", "state", run]).run(ONE_SHOT).json()
}

#[test]
fn hello_greets() {
    assert_eq!(result_of("hello", r#"{"name":" Ann "}"#)["greeting"], "Hello, Ann!");
}

#[test]
fn fan_out_joins_in_the_order_of_the_list() {
    let state = result_of("fan_out", r#"{"words":["red","green","blue"]}"#);
    assert_eq!(state["loud"], json!(["RED", "GREEN", "BLUE"]));
    assert_eq!(state["sentence"], "RED GREEN BLUE");
    assert_eq!(result_of("fan_out", r#"{"words":[]}"#)["sentence"], "");
}
