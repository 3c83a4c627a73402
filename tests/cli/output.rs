//! What the command line prints and how it ends.

use holdpoint_testkit::Program;
use serde_json::Value;

use crate::world::{ONE_SHOT, World};

/// A shell that pipes the fixtures program somewhere; its status is the program's.
fn piped(world: &World, command: &str) -> holdpoint_testkit::Finished {
    let program = holdpoint_testkit::example_path("fixtures");
    let script = format!("'{}' {command}", program.display());
    Program::new("bash")
        .args(["-o", "pipefail", "-c", &script])
        .current_dir(world.scratch().path())
        .env("HOLDPOINT_STORE", world.url())
        .run(ONE_SHOT)
}

#[test]
fn a_reader_that_goes_away_ends_the_command_quietly() {
    let world = World::sqlite();
    for _ in 0..3 {
        world.enqueue("lin", "{}");
    }
    let done = piped(&world, "runs list --json | head -n 1").expect_code(0);
    assert_eq!((done.stdout.lines().count(), done.stderr.as_str()), (1, ""));
    let done = piped(&world, "graphs list | true");
    assert_eq!((done.code(), done.stderr.as_str()), (Some(0), ""));
}

#[test]
fn half_a_document_is_no_success() {
    let world = World::sqlite();
    let run = world.enqueue("lin", "{}");
    for command in [format!("runs show {run} --json"), "runs list".to_owned()] {
        let done = piped(&world, &format!("{command} > /dev/full"));
        assert_ne!(done.code(), Some(0));
        assert!(done.stderr.starts_with("error[E_OUTPUT]"), "{}", done.stderr);
    }
}

#[test]
fn an_empty_list_prints_nothing_for_programs() {
    let world = World::sqlite();
    world.enqueue("lin", "{}");
    for args in [
        &["runs", "list", "--status", "failed"][..],
        &["gates"],
        &["workers"],
        &["sessions", "list"],
        &["graphs", "validate"],
        &["graphs", "check"],
    ] {
        let done = world.call(args).expect_code(0);
        assert_eq!((done.stdout.as_str(), done.stderr.as_str()), ("", ""), "{args:?}");
    }
}

#[test]
fn data_is_printed_escaped_and_without_colours_away_from_a_terminal() {
    let world = World::sqlite();
    let input = r#"{"k\u001b[2J":"\u202eabc\u0000\r\n","pad":"]8;;http://x\u0007"}"#;
    let run = world.enqueue("lin", input);
    let done = world.program().args(["runs", "show", &run]).run(ONE_SHOT).expect_code(0);
    assert!(!done.stdout.contains(['\u{1b}', '\u{202e}', '\u{7}', '\r']), "{:?}", done.stdout);
    world.work();
    let done = world.program().args(["runs", "show", &run]).run(ONE_SHOT).expect_code(0);
    assert!(!done.stdout.contains(['\u{1b}', '\u{202e}', '\u{7}', '\r']), "{:?}", done.stdout);
    let view = world.show(&run);
    assert_eq!(view["state"]["k\u{1b}[2J"], "\u{202e}abc\u{0}\r\n", "it comes back as it was");
}

#[test]
fn numbers_come_back_digit_for_digit() {
    let world = World::sqlite();
    let input = r#"{"a":9007199254740993,"b":18446744073709551615,"c":-0.0,"d":[],"e":{}}"#;
    let run = world.enqueue("lin", input);
    world.work();
    let done = world.call(&["runs", "state", &run]).expect_code(0);
    for part in ["9007199254740993", "18446744073709551615", "-0.0", "\"d\":[]", "\"e\":{}"] {
        assert!(done.stdout.contains(part), "{part} in {}", done.stdout);
    }
}

#[test]
fn looking_makes_no_store() {
    let world = World::sqlite();
    for args in [&["runs", "list"][..], &["approve", "r"], &["stats"]] {
        let done = world.call(args).expect_code(6);
        assert!(done.stderr.contains("there is no store at"), "{}", done.stderr);
    }
    assert!(!world.scratch().file("holdpoint.db").exists());
    let files = std::fs::read_dir(world.scratch().path()).unwrap();
    assert_eq!(files.filter(|file| file.as_ref().is_ok_and(|f| f.path().is_file())).count(), 0);
}

#[test]
fn a_configuration_file_sets_what_flags_and_environment_do_not() {
    let world = World::sqlite();
    let file = world.scratch().file("holdpoint.toml");
    let other = world.scratch().file("other.db");
    let text = format!("store = \"sqlite:{}\"\nnamespace = \"n1\"\njson = true\n", other.display());
    std::fs::write(&file, text).unwrap();
    let program = || Program::example("fixtures").env("HOLDPOINT_CONFIG", &file);
    let done = program().args(["enqueue", "lin", "--run", "r"]).run(ONE_SHOT).expect_code(0);
    assert_eq!(done.json()["run"], "r");
    assert!(other.exists());
    let done = program().env("HOLDPOINT_NAMESPACE", "n2").args(["runs", "list"]).run(ONE_SHOT);
    assert_eq!(done.expect_code(0).stdout, "", "the environment goes before the file");
    let done = program().args(["--namespace", "n1", "runs", "list"]).run(ONE_SHOT).expect_code(0);
    assert_eq!(done.json_lines().len(), 1);
    std::fs::write(&file, "stroe = \"x\"\n").unwrap();
    let done = program().args(["runs", "list"]).run(ONE_SHOT).expect_code(2);
    assert!(done.stderr.contains("stroe"), "{}", done.stderr);
}

#[test]
fn help_and_version_are_answers_and_no_command_is_a_wrong_use() {
    let world = World::sqlite();
    let help = world.program().arg("--help").run(ONE_SHOT).expect_code(0);
    assert!(help.stdout.contains("Usage: fixtures") && help.stderr.is_empty());
    drop(world.program().arg("--version").run(ONE_SHOT).expect_code(0));
    let none = world.program().run(ONE_SHOT).expect_code(2);
    assert!(none.stdout.is_empty() && none.stderr.contains("Usage: fixtures"));
}

#[test]
fn an_error_is_one_line_for_people_and_json_for_programs() {
    let world = World::sqlite();
    let people = world.program().args(["enqueue", "lin", "--priority", "12"]).run(ONE_SHOT);
    assert_eq!(people.stderr, "error[E_RANGE]: priority is 12, it must be 0 to 9\n");
    let program = world.call(&["enqueue", "lin", "--priority", "12"]);
    let last: Value = serde_json::from_str(program.stderr.lines().last().unwrap()).unwrap();
    assert_eq!(last["error"]["field"], "priority");
}
