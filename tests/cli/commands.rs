//! The commands around runs: wait, events, cancel, fork, edit, sessions, queues.

use holdpoint_testkit::until;
use serde_json::json;

use crate::world::{ONE_SHOT, RUNS, on_each_store, text};

#[test]
fn waiting_ends_with_the_outcome_of_the_run() {
    on_each_store(|world| {
        let _worker = world.worker(&[]);
        for (graph, status, exit) in
            [("lin", "completed", 0), ("ask", "parked", 0), ("broken", "failed", 1)]
        {
            let done = world.call(&["enqueue", graph, "--wait"]).expect_code(exit);
            let lines = done.json_lines();
            assert_eq!(lines[0]["created"], true);
            assert_eq!(lines[1]["status"], status, "{graph}");
            let run = text(&lines[0], "run");
            let args = ["runs", "wait", &run, "--until", "parked"];
            assert_eq!(world.call(&args).expect_code(exit).json()["status"], status);
        }
        let args = ["enqueue", "slow", "--input", "{\"n\":30}", "--wait", "--timeout", "200ms"];
        let late = world.call(&args).expect_code(1);
        assert_eq!(late.json_lines().len(), 2, "what was seen so far: {}", late.stdout);
    });
}

#[test]
fn events_are_followed_to_the_end_without_gaps() {
    on_each_store(|world| {
        let run = world.enqueue("slow", r#"{"n":0.3}"#);
        let follow = world.program().args(["--json", "runs", "events", &run, "--follow"]);
        let mut follow = follow.spawn();
        let _worker = world.worker(&[]);
        assert_eq!(follow.wait(RUNS).code(), Some(0));
        let seen = follow.json_lines();
        let numbers: Vec<u64> = seen.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
        assert_eq!(numbers, (0..seen.len() as u64).collect::<Vec<_>>());
        assert_eq!(seen.last().unwrap()["type"], "run_completed");
        let stored = world.lines(&["runs", "events", &run]);
        assert_eq!(stored, seen);
        let tail = world.lines(&["runs", "events", &run, "--from", "2"]);
        assert_eq!(tail[0]["seq"], 2);
        let history = world.lines(&["runs", "history", &run]);
        assert!(history.iter().all(|row| row["position"].is_array()), "{history:?}");
    });
}

#[test]
fn a_cancel_ends_what_waits_and_tells_what_runs() {
    on_each_store(|world| {
        let queued = world.enqueue("lin", "{}");
        for _ in 0..2 {
            assert_eq!(world.json(&["runs", "cancel", &queued])["status"], "cancelled");
        }
        let running = world.enqueue("slow", r#"{"n":30}"#);
        let _worker = world.worker(&[]);
        world.until_started(&running, "slow");
        let done = world.call(&["runs", "cancel", &running, "--wait"]).expect_code(0);
        assert_eq!(done.json()["status"], "cancelled");
        assert_eq!(world.ledger().count(&running, "c", "start"), 0);
        let both = world.call(&["runs", "cancel", &queued, "nope"]).expect_code(4);
        assert_eq!(both.json_lines().len(), 2);
    });
}

#[test]
fn all_that_match_are_named_first_and_then_redriven() {
    on_each_store(|world| {
        for _ in 0..3 {
            world.enqueue("broken", "{}");
        }
        world.work();
        let all = ["runs", "redrive", "--all-matching", "--graph", "broken"];
        let dry = world.lines(&[&all[..], &["--dry-run"]].concat());
        assert_eq!(dry.len(), 3);
        assert_eq!(world.lines(&["runs", "list", "--status", "failed"]).len(), 3);
        assert_eq!(world.lines(&all).len(), 3);
        assert_eq!(world.lines(&["runs", "list", "--status", "queued"]).len(), 3);
        drop(world.call(&["runs", "cancel", "r", "--graph", "broken"]).expect_code(2));
    });
}

#[test]
fn a_fork_asks_again_and_leaves_the_original_alone() {
    on_each_store(|world| {
        let run = world.enqueue("ask", "{}");
        world.work();
        world.json(&["approve", &run]);
        world.work();
        let before = world.lines(&["runs", "events", &run]);
        let history = world.lines(&["runs", "history", &run]);
        let at = history.iter().find(|row| row["type"] == "node_completed").unwrap();
        let at = at["seq"].to_string();
        let edit = ["--edit", r#"{"x":1}"#, "--session", "again"];
        let fork = world.json(&[&["runs", "fork", &run, "--at", &at][..], &edit].concat());
        let replay = world.json(&["runs", "replay", &run, "--at", &at]);
        world.work();
        let (fork, replay) = (text(&fork, "run"), text(&replay, "run"));
        let view = world.show(&fork);
        assert_eq!((&view["status"], &view["session"]), (&json!("parked"), &json!("again")));
        assert_eq!(view["state"]["x"], 1);
        world.json(&["reject", &fork]);
        world.json(&["approve", &replay]);
        world.work();
        assert_eq!(world.path(&fork), ["a", "rejected"]);
        assert_eq!(world.path(&replay), ["a", "c"]);
        assert_eq!(world.ledger().count(&fork, "a", "start"), 0, "a was done before the point");
        assert_eq!(world.lines(&["runs", "events", &run]), before);
    });
}

#[test]
fn an_edit_needs_the_newest_number() {
    on_each_store(|world| {
        let run = world.enqueue("ask", "{}");
        world.work();
        let seq = world.show(&run)["seq"].to_string();
        let edit = |seq: &str| {
            world.call(&["runs", "edit", &run, "--update", r#"{"x":7}"#, "--if-seq", seq])
        };
        drop(edit(&seq).expect_code(0));
        drop(edit(&seq).expect_code(5));
        assert_eq!(world.show(&run)["state"]["x"], 7);
        world.json(&["approve", &run]);
        world.work();
        assert_eq!(world.json(&["runs", "state", &run])["x"], 7);
    });
}

#[test]
fn a_key_names_the_first_run_and_a_scheduled_one_can_start_now() {
    on_each_store(|world| {
        let args = ["enqueue", "lin", "--key", "k", "--input", r#"{"x":1,"y":2}"#, "--delay", "1h"];
        let first = world.json(&args);
        let again = ["enqueue", "lin", "--key", "k", "--input", r#"{ "y": 2, "x": 1 }"#];
        let again = world.json(&again);
        assert_eq!((&again["run"], &again["created"]), (&first["run"], &json!(false)));
        let run = text(&first, "run");
        assert_eq!(world.show(&run)["status"], "scheduled");
        assert_eq!(world.json(&["runs", "why", &run])["cause"], "scheduled");
        assert_eq!(world.json(&["runs", "start-now", &run])["status"], "queued");
        world.work();
        assert_eq!(world.show(&run)["status"], "completed");
    });
}

#[test]
fn lists_page_without_gaps_and_filter_by_all_conditions() {
    on_each_store(|world| {
        for n in 0..5 {
            let tag = format!("n={}", n % 2);
            world.json(&["enqueue", "lin", "--run", &format!("r{n}"), "--tag", &tag]);
        }
        let mut seen = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let mut args = vec!["runs", "list", "--limit", "2"];
            args.extend(after.iter().flat_map(|after| ["--after", after]));
            let mut rows = world.lines(&args);
            after = rows.last().and_then(|row| row["next"].as_str().map(str::to_owned));
            if after.is_some() {
                rows.pop();
            }
            seen.extend(rows.iter().map(|row| text(row, "run")));
            if after.is_none() {
                break;
            }
        }
        assert_eq!(seen, ["r4", "r3", "r2", "r1", "r0"]);
        let odd = world.lines(&["runs", "list", "--tag", "n=1", "--graph", "lin"]);
        assert_eq!(odd.len(), 2);
        assert_eq!(odd[0]["tags"], json!({ "n": "1" }));
    });
}

#[test]
fn sessions_take_turns_and_queues_pause() {
    on_each_store(|world| {
        for run in ["s1", "s2"] {
            world.json(&["enqueue", "lin", "--session", "s", "--run", run]);
        }
        let session = world.json(&["sessions", "show", "s"]);
        assert_eq!((&session["active_run"], &session["runs"]), (&json!("s1"), &json!(2)));
        world.json(&["queues", "pause", "default"]);
        assert_eq!(world.lines(&["queues", "list"])[0]["paused"], true);
        world.work();
        assert_eq!(world.show("s1")["status"], "queued", "a paused queue hands out nothing");
        world.json(&["queues", "resume", "default"]);
        world.work();
        assert_eq!(world.path("s2"), ["a", "b", "c", "a", "b", "c"], "it goes on from the first");
        world.json(&["sessions", "delete", "s"]);
        drop(world.call(&["runs", "show", "s1"]).expect_code(4));
    });
}

#[test]
fn workers_are_listed_while_they_live() {
    on_each_store(|world| {
        let mut worker = world.program().args(["worker", "--no-supervisor"]).spawn();
        let live = until("the worker to be listed", RUNS, || {
            world.call(&["workers"]).json_lines().into_iter().next()
        });
        assert_eq!((&live["state"], &live["pid"]), (&json!("live"), &json!(worker.pid())));
        worker.sigterm();
        assert_eq!(worker.wait(ONE_SHOT).code(), Some(0));
        assert!(world.lines(&["workers"]).is_empty(), "one that left in order is gone at once");
    });
}
