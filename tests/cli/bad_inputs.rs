//! The bad inputs that a command line can send: each is refused with its code and exit status,
//! and leaves the store as it was.

use serde::Deserialize;
use serde_json::Value;

use crate::world::{ONE_SHOT, World, on_each_store};

/// One bad input, as the data file has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// What it is.
    name: String,
    /// The command.
    args: Vec<String>,
    /// What stands on stdin.
    #[serde(default)]
    stdin: Option<Text>,
    /// What stands in place of the argument `TEXT`.
    #[serde(default)]
    text: Option<Text>,
    /// The stable code.
    code: String,
    /// The exit status.
    exit: i32,
}

/// A text with a middle that is repeated.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Text {
    before: String,
    middle: String,
    times: usize,
    after: String,
}

impl Text {
    fn make(&self) -> String {
        format!("{}{}{}", self.before, self.middle.repeat(self.times), self.after)
    }
}

#[test]
fn bad_inputs_are_refused_by_code_and_change_nothing() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("../data/bad_inputs.json")).unwrap();
    on_each_store(|world| {
        prepare(world);
        let before = (world.dump(), events(world));
        for case in &cases {
            check(world, case);
            assert_eq!(before.0, world.dump(), "{}: the store changed", case.name);
        }
        assert_eq!(before.1, events(world));
        assert_eq!(world.json(&["enqueue", "lin"])["created"], true, "the next good one works");
    });
}

/// A store in which there is something to be in conflict with: a parked run, a busy session, a
/// key, and a worker that published its graphs.
fn prepare(world: &World) {
    world.enqueue("lin", "{}");
    world.json(&["enqueue", "ask", "--run", "parked", "--session", "busy", "--key", "taken"]);
    world.json(&["enqueue", "lin", "--run", "done"]);
    world.work();
}

fn events(world: &World) -> Vec<Value> {
    ["parked", "done"].map(|run| world.lines(&["runs", "events", run])).concat()
}

fn check(world: &World, case: &Case) {
    let text = case.text.as_ref().map(Text::make);
    let args = case.args.iter().map(|arg| match (&text, arg.as_str()) {
        (Some(text), "TEXT") => text.clone(),
        (_, arg) => arg.to_owned(),
    });
    let mut program = world.program().arg("--json").args(args);
    if let Some(stdin) = &case.stdin {
        program = program.stdin(stdin.make());
    }
    let done = program.run(ONE_SHOT);
    let last = done.stderr.lines().last().unwrap_or_default();
    let error: Value = serde_json::from_str(last)
        .unwrap_or_else(|_| panic!("{}: no JSON error but {:?}", case.name, done.stderr));
    let got = (error["error"]["code"].as_str().unwrap_or_default(), done.code());
    assert_eq!(got, (case.code.as_str(), Some(case.exit)), "{}: {}", case.name, done.stderr);
    assert_eq!(done.stdout, "", "{}", case.name);
    let first = done.stderr.lines().next().unwrap_or_default();
    let head = format!("error[{}]: ", case.code);
    assert!(first.starts_with(&head), "{}: {first}", case.name);
    assert!(!done.stderr.contains(['\u{1b}', '\u{202e}']), "{}: raw text", case.name);
}
