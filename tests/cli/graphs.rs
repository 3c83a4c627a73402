//! The fixture graphs, each as its row says, on each store.

use serde_json::{Value, json};

use crate::world::{RUNS, World, on_each_store, text};

/// Enqueues one run for each (graph, input), works, and gives the runs in that order.
fn run_all(world: &World, graphs: &[(&str, &str)]) -> Vec<String> {
    let runs: Vec<String> =
        graphs.iter().map(|(graph, input)| world.enqueue(graph, input)).collect();
    world.work();
    runs
}

fn ends(world: &World, graph: &str, input: &str, status: &str) -> Value {
    let runs = run_all(world, &[(graph, input)]);
    let view = world.show(&runs[0]);
    assert_eq!(view["status"], status, "{graph} {input}: {view}");
    view
}

#[test]
fn graphs_that_complete_visit_their_nodes_once_and_in_order() {
    let cases: [(&str, &str, &[&str]); 16] = [
        ("lin", "{}", &["a", "b", "c"]),
        ("lin", r#"{"pad":100}"#, &["a", "b", "c"]),
        ("slow", r#"{"n":0.05}"#, &["a", "slow", "c"]),
        ("spin", r#"{"n":0.05}"#, &["a", "spin", "c"]),
        ("flaky", r#"{"k":2}"#, &["a", "flaky", "c"]),
        ("unsafe", r#"{"n":0.05}"#, &["a", "unsafe", "c"]),
        ("deep", r#"{"d":20}"#, &["a", "deep", "c"]),
        ("uneven", "{}", &["a", "b", "b2", "c", "d"]),
        ("joinc", r#"{"route":"A"}"#, &["start", "A", "C", "D"]),
        ("joinc", r#"{"route":"B"}"#, &["start", "B", "C", "D"]),
        ("joinc3", r#"{"route":"A"}"#, &["start", "A", "A2", "A3", "C", "D", "z", "end"]),
        ("joinc3", r#"{"route":"B"}"#, &["start", "B", "C", "D", "z", "end"]),
        ("loop", r#"{"n":4}"#, &["count", "count", "count", "count"]),
        ("w2", r#"{"same":true}"#, &["start", "x", "y", "join"]),
        ("mix", "{}", &["start", "flaky", "ok", "join"]),
        ("route", r#"{"to":"c"}"#, &["a", "c"]),
    ];
    on_each_store(|world| {
        let graphs: Vec<(&str, &str)> = cases.iter().map(|(g, input, _)| (*g, *input)).collect();
        for (run, (graph, input, path)) in run_all(world, &graphs).iter().zip(cases) {
            let mut got = world.path(run);
            let mut expect: Vec<String> = path.iter().map(|node| (*node).to_owned()).collect();
            if matches!(graph, "mix" | "uneven" | "joinc3" | "w2") {
                // Branches join in the order of the edges, which is not the table's.
                assert_eq!(got.first(), expect.first());
                assert_eq!(got.last(), expect.last());
                got.sort();
                expect.sort();
            }
            assert_eq!(got, expect, "{graph} {input}");
            for node in path {
                let times = path.iter().filter(|other| *other == node).count();
                assert_eq!(world.ledger().count(run, node, "done"), times, "{graph} {node}");
            }
        }
    });
}

#[test]
fn graphs_that_fail_say_why_and_where() {
    on_each_store(|world| {
        for (graph, input, reason, node) in [
            ("broken", "{}", "node_error", Some("broken")),
            ("panic", "{}", "node_error", Some("panic")),
            ("flaky", r#"{"k":9}"#, "node_error", Some("flaky")),
            ("deep", r#"{"d":200}"#, "node_error", Some("deep")),
            ("w2", "{}", "write_conflict", None),
            ("loop", r#"{"n":2000}"#, "step_limit", None),
        ] {
            let view = ends(world, graph, input, "failed");
            assert_eq!(view["reason"]["code"], reason, "{view}");
            if let Some(node) = node {
                assert_eq!(view["reason"]["node"], node, "{view}");
                assert_eq!(view["state"]["path"], json!(["a"]), "the checkpoint before it stands");
            }
        }
    });
}

#[test]
fn a_redrive_goes_on_at_the_last_checkpoint() {
    on_each_store(|world| {
        let view = ends(world, "flaky", r#"{"k":6}"#, "failed");
        let run = text(&view, "run");
        assert_eq!(view["counters"]["node_errors"], 5);
        assert_eq!(world.json(&["runs", "redrive", &run])["status"], "queued");
        world.work();
        assert_eq!(world.path(&run), ["a", "flaky", "c"]);
        assert_eq!(world.ledger().count(&run, "a", "start"), 1, "what was done is not repeated");
    });
}

#[test]
fn a_fan_collects_in_index_order_and_chains_add_up() {
    on_each_store(|world| {
        let runs = run_all(
            world,
            &[
                ("fan", r#"{"n":5}"#),
                ("fan", r#"{"n":0}"#),
                ("chain-10", r#"{"pad":7}"#),
                ("chain-100", "{}"),
                ("w", r#"{"id":1,"pad":"x","log":[]}"#),
            ],
        );
        let state = |run: &str| world.show(run)["state"].clone();
        assert_eq!(state(&runs[0])["items"], json!([0, 1, 2, 3, 4]));
        assert_eq!(state(&runs[1])["items"], Value::Null);
        assert_eq!(state(&runs[2])["items"], json!(vec!["x".repeat(7); 10]));
        assert_eq!(state(&runs[3])["path"].as_array().unwrap().len(), 100);
        let log = &state(&runs[4])["log"];
        assert_eq!(log.as_array().map(Vec::len), Some(3));
        assert_eq!(log[0].as_str().map(str::len), Some(96));
    });
}

#[test]
fn gates_open_for_a_yes_and_reroute_for_a_no() {
    on_each_store(|world| {
        let runs = run_all(world, &[("ask", "{}"), ("ask", "{}"), ("sub", "{}")]);
        for run in &runs {
            assert_eq!(world.show(run)["status"], "parked");
        }
        assert_eq!(world.lines(&["gates"]).len(), 3);
        let open = world.question(&runs[0]);
        let done = world.json(&["approve", &runs[0], "--interrupt", &open, "--by", "ann"]);
        assert_eq!((&done["outcome"], &done["decided_by"]), (&json!("delivered"), &json!("ann")));
        world.json(&["reject", &runs[1], "--gate", "c", "--comment", "too much"]);
        world.json(&["approve", &runs[2]]);
        world.work();
        assert_eq!(world.path(&runs[0]), ["a", "c"]);
        assert_eq!(world.path(&runs[1]), ["a", "rejected"]);
        assert_eq!(world.path(&runs[2]), ["p0", "sub/s0", "sub/ask", "sub/s1", "p1"]);
        assert_eq!(world.show(&runs[2])["state"]["ask"], json!({ "approve": true }));
        let again = world.call(&["reject", &runs[0], "--interrupt", &open]).expect_code(5);
        assert!(again.stderr.contains("ann"), "the decision is named: {}", again.stderr);
    });
}

/// Answers all open questions of a run in one call; one answer too many and none is taken.
fn answer_all(world: &World, run: &str) {
    let open = world.show(run)["interrupts"].as_array().unwrap().clone();
    let answer = |open: &Value| (text(open, "interrupt"), open["node"].clone());
    let mut answers: serde_json::Map<String, Value> = open.iter().map(answer).collect();
    let good = Value::from(answers.clone()).to_string();
    answers.insert("nowhere".to_owned(), json!(1));
    let bad = Value::from(answers).to_string();
    let send = |answers: &str| world.call(&["signal", run, "--answers", answers, "--key", "k"]);
    let refused = send(&bad).expect_code(4);
    assert!(refused.stderr.contains("none of the answers was taken"), "{}", refused.stderr);
    assert!(refused.stderr.contains("nowhere"), "{}", refused.stderr);
    assert_eq!(world.show(run)["status"], "parked");
    assert!(send("[1]").expect_code(3).stderr.contains("E_TYPE"));
    let both = world.call(&["signal", run, "--answers", &good, "--gate", "g"]);
    assert!(both.expect_code(2).stderr.contains("--gate"));
    let said = send(&good).expect_code(0).json();
    let outcomes = said.as_array().unwrap().iter().map(|one| one["outcome"].as_str().unwrap());
    assert_eq!(outcomes.collect::<Vec<_>>(), vec!["delivered"; open.len()]);
    assert_eq!(send(&good).expect_code(0).json(), said, "a repeat");
}

#[test]
fn asks_take_their_own_answers_and_steps_run_once() {
    on_each_store(|world| {
        let graphs = [("ask_in", "{}"), ("ask2p", "{}"), ("ask2s", "{}"), ("askloop", "{}")];
        let runs = run_all(world, &graphs);
        let [ask_in, ask2p, ask2s, askloop] = &runs[..] else { panic!("four runs") };
        world.json(&["signal", ask_in, "--answer", "null"]);
        let ambiguous = world.call(&["signal", ask2p, "--answer", "1"]).expect_code(5);
        assert!(ambiguous.stderr.contains("E_AMBIGUOUS"), "{}", ambiguous.stderr);
        answer_all(world, ask2p);
        world.json(&["approve", ask2s]);
        world.json(&["signal", askloop, "--answer", "\"again\""]);
        world.work();
        world.json(&["reject", ask2s]);
        world.json(&["signal", askloop, "--answer", "\"done\""]);
        world.work();
        for run in &runs {
            assert_eq!(world.show(run)["status"], "completed", "{run}");
        }
        assert_eq!(world.ledger().count(ask_in, "ask_in", "E"), 1);
        assert_eq!(world.ledger().count(ask_in, "ask_in", "F"), 1);
        assert_eq!(world.show(ask_in)["state"]["ask_in"], Value::Null);
        let state = world.show(ask2p)["state"].clone();
        assert_eq!((&state["ask_l"], &state["ask_r"]), (&json!("ask_l"), &json!("ask_r")));
        let state = world.show(ask2s)["state"].clone();
        assert_eq!(state["first"], json!({ "approve": true }));
        assert_eq!(state["second"], json!({ "approve": false }));
        assert_eq!(world.path(askloop), ["ask", "ask", "end"]);
    });
}

#[test]
fn a_route_decides_once() {
    on_each_store(|world| {
        let runs = run_all(world, &[("route", r#"{"to":"b"}"#)]);
        assert_eq!(world.path(&runs[0]), ["a", "b"]);
        assert_eq!(world.ledger().count(&runs[0], "a", "decide"), 1);
    });
}

#[test]
fn another_version_strands_what_it_cannot_serve_and_migrates_the_rest() {
    on_each_store(|world| {
        let runs = run_all(world, &[("ask", "{}")]);
        let check = || world.program().env("HOLDPOINT_FIXTURE_ASK", "v2").arg("--json");
        let rows = check().args(["graphs", "check"]).run(RUNS).expect_code(0).json_lines();
        assert_eq!((&rows[0]["run"], &rows[0]["verdict"]), (&json!(runs[0]), &json!("migrates")));
        world.json(&["approve", &runs[0]]);
        let worker = ["worker", "--exit-when-idle"];
        drop(check().args(worker).run(RUNS).expect_code(0));
        assert_eq!(world.show(&runs[0])["status"], "queued", "another version waits untouched");
        let why = world.json(&["runs", "why", &runs[0]]);
        assert!(why["text"].as_str().is_some_and(|text| !text.is_empty()), "{why}");
        let (from, to) = (text(&rows[0], "from"), text(&rows[0], "to"));
        let migrate = ["graphs", "migrate", "ask", "--from", &from, "--to", &to];
        let dry = check().args(migrate).arg("--dry-run").run(RUNS).expect_code(0);
        assert_eq!(dry.json_lines().len(), 1);
        drop(check().args(migrate).run(RUNS).expect_code(0));
        drop(check().args(worker).run(RUNS).expect_code(0));
        assert_eq!(world.path(&runs[0]), ["a", "c", "d"]);
    });
}
