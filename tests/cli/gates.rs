//! Gates from outside: signed links, and the record of decisions.

use std::fs;

use serde_json::json;

use crate::world::{World, on_each_store, text};

/// A run that waits at its gate, and a ring of keys.
fn waiting(world: &World) -> (String, String) {
    let run = world.enqueue("ask", "{}");
    world.work();
    let keys = world.scratch().file("link.keys");
    let line = world.program().args(["gates", "new-key", "k1"]).run(crate::world::ONE_SHOT);
    fs::write(&keys, line.expect_code(0).stdout).unwrap();
    (run, keys.display().to_string())
}

#[test]
fn a_signed_link_decides_once_and_the_record_says_so() {
    on_each_store(|world| {
        let (run, keys) = waiting(world);
        let link = world
            .json(&["gates", "link", &run, "--by", "ann", "--allow", "approve", "--keys", &keys]);
        let token = text(&link, "token");
        let look = world.json(&["gates", "redeem", &token, "--look", "--keys", &keys]);
        assert_eq!((&look["by"], &look["allowed"]), (&json!("ann"), &json!(["approve"])));
        let redeem = |how: &str| world.call(&["gates", "redeem", &token, how, "--keys", &keys]);
        assert!(redeem("--reject").expect_code(3).stderr.contains("E_NOT_ALLOWED"));
        assert_eq!(redeem("--approve").expect_code(0).json()["decided_by"], "ann");
        assert!(redeem("--approve").expect_code(3).stderr.contains("E_LINK_USED"));
        world.work();
        let rows = world.lines(&["audit", &run]);
        let acts: Vec<&str> = rows.iter().map(|row| row["act"].as_str().unwrap()).collect();
        assert_eq!(acts, ["opened", "decided"]);
        let decided = rows.last().unwrap();
        assert_eq!(decided["by"], "ann");
        assert!(decided["from"].as_str().unwrap().starts_with("link "), "{decided}");
        assert_eq!(decided["args_hash"], rows[0]["args_hash"]);
        let sum = world.json(&["audit", "--verify"]);
        assert_eq!(
            (&sum["runs"], &sum["decisions"], &sum["faults"]),
            (&json!(1), &json!(1), &json!(0))
        );
    });
}

#[test]
fn one_altered_byte_of_a_decision_is_named() {
    let world = World::sqlite();
    let (run, _) = waiting(&world);
    world.json(&["approve", &run, "--by", "ann"]);
    world.work();
    let decided = world.lines(&["audit", &run]).pop().unwrap();
    let seq = decided["seq"].as_i64().unwrap();
    let path = world.scratch().sqlite_url();
    let file = rusqlite::Connection::open(path.strip_prefix("sqlite:").unwrap()).unwrap();
    let body: Vec<u8> =
        file.query_row("SELECT body FROM events WHERE n = ?1", [seq], |row| row.get(0)).unwrap();
    let at = body.windows(5).position(|part| part == b"\"ann\"").unwrap();
    let mut altered = body;
    altered[at + 1] = b'b';
    file.execute("UPDATE events SET body = ?1 WHERE n = ?2", (altered, seq)).unwrap();
    let said = world.call(&["audit", &run, "--verify"]).expect_code(3);
    let verdict = &said.json_lines()[0];
    assert_eq!((&verdict["run"], &verdict["fault"]["seq"]), (&json!(run), &json!(seq)));
    assert_eq!(verdict["decisions"], 0, "what was altered counts no more");
    drop(world.call(&["audit", "--verify"]).expect_code(3));
}

#[test]
fn a_budget_is_asked_about_and_raised_or_ends_the_run() {
    on_each_store(|world| {
        let enqueue = || {
            let budget = ["--budget-steps", "1", "--budget-time", "1h"];
            let args = [&["enqueue", "lin"], &budget[..]].concat();
            text(&world.json(&args), "run")
        };
        let (raised, ended) = (enqueue(), enqueue());
        world.work();
        for run in [&raised, &ended] {
            let shown = world.show(run);
            let open = &shown["interrupts"][0];
            assert_eq!((&shown["status"], &open["kind"]), (&json!("parked"), &json!("budget")));
            assert!(text(open, "question").contains("budget of 1 step"), "{open}");
        }
        let none = world.call(&["signal", &raised, "--answer", r#"{"raise_by": 0}"#]);
        assert!(none.expect_code(3).stderr.contains("answer/raise_by"));
        world.json(&["signal", &raised, "--answer", r#"{"raise_by": 99}"#]);
        world.json(&["signal", &ended, "--answer", "\"fail\"", "--by", "ann"]);
        world.work();
        assert_eq!(world.show(&raised)["status"], "completed");
        let failed = world.lines(&["runs", "list", "--reason", "budget_exceeded"]);
        let failed: Vec<&str> = failed.iter().map(|row| row["run"].as_str().unwrap()).collect();
        assert_eq!(failed, [ended.as_str()]);
    });
}
