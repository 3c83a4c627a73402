//! `doctor`: finds damage, says what a repair would do, keeps what it changes, and mends it.

use serde_json::Value;

use crate::world::{World, on_each_store, text};

/// Damages the store by hand: a run in two places, and a wrong count.
fn damage(world: &World, run: &str) {
    world.behind(
        &[&["ZADD", "prk", "5", run], &["HSET", "c", "default", "99"]],
        &format!(
            "UPDATE runs SET ready = 0 WHERE id = '{run}';
             UPDATE counts SET n = 99 WHERE status = 'queued';"
        ),
    );
}

fn is_bad(line: &Value) -> bool {
    line["level"] == "bad"
}

/// C51: it is found, planned, kept and mended; exit codes tell whether something bad is left.
#[test]
fn damage_is_found_and_mended() {
    on_each_store(|world| {
        let run = world.enqueue("lin", "{}");
        let other = world.enqueue("lin", "{}");
        assert!(!world.lines(&["doctor"]).iter().any(is_bad));
        damage(world, &run);
        let found = world.call(&["doctor"]).expect_code(3).json_lines();
        assert!(found.iter().any(|f| is_bad(f) && text(f, "text").contains(&run)), "{found:?}");

        let before = world.behind_dump();
        let plan = world.call(&["doctor", "--repair", "--dry-run"]).expect_code(3).json_lines();
        assert!(plan.iter().all(|line| line["step"] == "plan"), "{plan:?}");
        assert!(plan.iter().any(|line| line["about"] == run.as_str()), "{plan:?}");
        assert_eq!(world.behind_dump(), before, "a dry run changes nothing");

        let file = world.scratch().path().join("backup.jsonl");
        let path = file.to_str().unwrap();
        let said = world.lines(&["doctor", "--repair", "--backup", path]);
        let steps: Vec<&str> = said.iter().filter_map(|line| line["step"].as_str()).collect();
        assert!(steps.starts_with(&["plan"]) && steps.contains(&"backup"), "{said:?}");
        assert!(steps.contains(&"repaired"), "{said:?}");
        let kept = std::fs::read_to_string(&file).unwrap();
        let kept: Vec<Value> =
            kept.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(kept.len(), steps.iter().filter(|step| **step == "repaired").count());
        let changes = |line: &Value| line["changes"].as_array().unwrap().clone();
        assert!(kept.iter().flat_map(changes).any(|change| change["before"] != change["after"]));

        assert!(!world.lines(&["doctor"]).iter().any(is_bad));
        let again = world.call(&["doctor", "--repair", "--backup", path]).expect_code(0);
        assert!(!again.stdout.contains("backup"), "nothing to keep, no file: {}", again.stdout);
        damage(world, &run);
        let refused = world.call(&["doctor", "--repair", "--backup", path]).expect_code(2);
        assert!(refused.stderr.contains("backup"), "an older backup is never written over");
        drop(world.call(&["doctor", "--repair"]).expect_code(0));
        world.work();
        for run in [&run, &other] {
            assert_eq!(world.show(run)["status"], "completed");
        }
    });
}
