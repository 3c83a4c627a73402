//! The examples do what they say.

use std::fs;

use holdpoint_testkit::{Finished, Program, Scratch, example_path, until};
use serde_json::{Value, json};

use crate::world::{ONE_SHOT, RUNS, World, on_each_store, text};

/// Runs an example in a folder of its own, on the store that it takes by itself.
fn example(name: &str, scratch: &Scratch) -> Program {
    Program::example(name).current_dir(scratch.path())
}

/// An example on the world's store.
#[derive(Clone, Copy)]
struct Example<'a> {
    name: &'a str,
    world: &'a World,
}

impl Example<'_> {
    fn program(self) -> Program {
        example(self.name, self.world.scratch()).env("HOLDPOINT_STORE", self.world.url())
    }

    /// What the example prints when it is called without a command.
    fn told(self) -> String {
        self.program().run(RUNS).expect_code(0).stdout
    }

    fn call(self, args: &[&str]) -> Finished {
        self.program().args(args).run(ONE_SHOT)
    }

    /// A command that must be taken.
    fn take(self, args: &[&str]) -> String {
        self.call(args).expect_code(0).stdout
    }

    fn json(self, args: &[&str]) -> Value {
        self.program().arg("--json").args(args).run(ONE_SHOT).expect_code(0).json()
    }

    fn work(self) {
        drop(self.program().args(["worker", "--exit-when-idle"]).run(RUNS).expect_code(0));
    }

    fn state(self, run: &str) -> Value {
        self.json(&["runs", "state", run])
    }

    /// Runs a command as the example printed it, with `fill` for the words in capitals.
    fn typed(self, command: &str, fill: &[(&str, &str)]) -> Finished {
        let called = format!("cargo run -q --example {}", self.name);
        let rest = command.trim().strip_prefix(&called).and_then(|rest| rest.strip_prefix(" --"));
        let rest = rest.unwrap_or_else(|| panic!("{command:?} does not begin with {called:?}"));
        let rest = fill.iter().fold(rest.to_owned(), |rest, (word, with)| rest.replace(word, with));
        Program::new("sh")
            .args(["-c", &format!("'{}' {rest}", example_path(self.name).display())])
            .current_dir(self.world.scratch().path())
            .env("HOLDPOINT_STORE", self.world.url())
            .run(ONE_SHOT)
    }
}

/// All of `lines` stand in `told`, in this order.
#[track_caller]
fn expect_lines(told: &str, lines: &[&str]) {
    let mut rest = told;
    for line in lines {
        let found = rest.split_once(line);
        rest = found.unwrap_or_else(|| panic!("{line:?} is missing, or too early, in\n{told}")).1;
    }
}

/// The line of `told` that has all of `parts`.
#[track_caller]
fn line_with<'a>(told: &'a str, parts: &[&str]) -> &'a str {
    let fits = |line: &&str| parts.iter().all(|part| line.contains(part));
    told.lines().find(fits).unwrap_or_else(|| panic!("no line has {parts:?} in\n{told}"))
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
        "? two-approvals: Charge 2232.00 EUR to City Library for order-1004?",
        "2 people must say the same: no votes yet",
        "cargo run -q --example order_approval -- approve order-1002 --interrupt",
    ] {
        assert!(first.stdout.contains(line), "{line:?} is missing in\n{}", first.stdout);
    }
    let second = example("order_approval", &scratch).run(RUNS).expect_code(0);
    assert!(second.stdout.contains("order-1001 is known"), "{}", second.stdout);
}

#[test]
fn order_approval_asks_one_person_or_two() {
    on_each_store(|world| {
        let orders = Example { name: "order_approval", world };
        let told = orders.told();
        // The middle one: a rejection must say why.
        let reject = line_with(&told, &["reject order-1002", "--comment WHY"]);
        let silent = orders.typed(reject, &[("--comment WHY", "")]).expect_code(3);
        assert!(silent.stderr.contains("comment is missing; reject needs one"), "{silent:?}");
        drop(orders.typed(reject, &[("WHY", "twice")]).expect_code(0));
        // The big one: two different people, the second by a link.
        let voted = orders.take(&["approve", "order-1004", "--by", "ann"]);
        assert!(voted.contains("it needs more votes"), "{voted}");
        let twice = orders.call(&["approve", "order-1004", "--by", "ann"]).expect_code(5);
        assert!(twice.stderr.contains("E_VOTED"), "{}", twice.stderr);
        orders.work();
        let open = orders.take(&["runs", "show", "order-1004"]);
        assert!(open.contains(r#"must say the same: {"approve":true} by ann"#), "{open}");
        let keys = orders.take(&["gates", "new-key", "2026"]);
        fs::write(world.scratch().file("link.keys"), keys).unwrap();
        let with = |args: &[&'static str]| [args, &["--keys", "link.keys"]].concat();
        let token = orders.take(&with(&["gates", "link", "order-1004", "--by", "cfo"]));
        let redeem = ["gates", "redeem", token.trim(), "--approve", "--keys", "link.keys"];
        orders.take(&redeem);
        let told = orders.told();
        let summary = "completed: order-1001, order-1002, order-1003, order-1004";
        assert!(told.contains(summary), "{told}");
        assert_eq!(orders.state("order-1002")["refused"], true);
        assert_eq!(orders.state("order-1004")["approved_by"], "cfo");
        let small = orders.state("order-1003");
        assert!(small.get("approved_by").is_none(), "a small one asks nobody: {small}");
    });
}

/// What happened to the questions of a run, in order.
fn acts(example: Example<'_>, run: &str) -> String {
    let rows = example.program().args(["--json", "audit", run]).run(ONE_SHOT).expect_code(0);
    let acts = rows.json_lines();
    acts.iter().map(|row| text(row, "act")).collect::<Vec<_>>().join(" ")
}

/// Only of Bo's run, whom nobody answers: how far the votes on Ada's come within hours as short
/// as these is up to the machine. They are in the next test.
#[test]
fn kyc_onboarding_reminds_and_expires() {
    on_each_store(|world| {
        let kyc = Example { name: "kyc_onboarding", world };
        let demo = || kyc.program().env("KYC_HOUR", "40ms").run(RUNS).expect_code(0).stdout;
        expect_lines(
            &demo(),
            &[
                "kyc-bo  ? Open an account for Bo Lindqvist?",
                "kyc-bo  reminded, now asked too: head-of-compliance",
                r#"kyc-bo  answered {"approve":false} by deadline"#,
                "kyc-bo  ✓ decline",
                "kyc-bo was declined",
            ],
        );
        assert_eq!(acts(kyc, "kyc-bo"), "opened reminded decided");
        assert!(demo().ends_with("kyc-bo was declined\n"));
    });
}

#[test]
fn kyc_onboarding_counts_votes_and_leaves_the_rest_to_people() {
    on_each_store(|world| {
        let kyc = Example { name: "kyc_onboarding", world };
        let told = kyc.told();
        expect_lines(
            &told,
            &[
                "kyc-ada  ? Open an account for Ada Moreau?",
                "ivo from sales tries:\nrefused: E_NOT_ALLOWED by is ivo",
                "voted on kyc-ada as ann: it needs more votes",
                "refused: E_VOTED by is ann",
                "answered kyc-ada as ben",
                "kyc-ada has an account",
                "kyc-bo waits for an answer",
            ],
        );
        assert_eq!(acts(kyc, "kyc-ada"), "opened voted decided");
        let approve = line_with(&told, &["approve kyc-bo", "--by WHO --group compliance"]);
        for who in ["ann", "ben"] {
            drop(kyc.typed(approve, &[("WHO", who)]).expect_code(0));
        }
        kyc.work();
        assert_eq!(kyc.state("kyc-bo")["second"], "ben");
        let bad = kyc.program().env("KYC_HOUR", "soon").run(ONE_SHOT).expect_code(2);
        assert!(bad.stderr.contains("KYC_HOUR"), "{}", bad.stderr);
    });
}

#[test]
fn a_signal_ends_a_program_that_waits_and_loses_nothing() {
    let world = World::sqlite();
    let kyc = Example { name: "kyc_onboarding", world: &world };
    let mut demo = kyc.program().env("KYC_HOUR", "900ms").spawn();
    until("the program to wait for the deadline", RUNS, || {
        demo.stdout().contains("nobody looks at Bo's papers").then_some(())
    });
    demo.sigterm();
    assert_eq!(demo.wait(ONE_SHOT).code(), Some(130), "{}", demo.stderr());
    assert_eq!(kyc.json(&["runs", "show", "kyc-bo"])["status"], "parked");
    assert_eq!(kyc.json(&["runs", "show", "kyc-ada"])["status"], "completed");
}

#[test]
fn deploy_train_takes_four_eyes_and_goes_forward_or_back() {
    on_each_store(|world| {
        let train = Example { name: "deploy_train", world };
        let told = train.told();
        for (release, choice, end) in
            [("web-41", "promote", "promote"), ("web-42", "rollback", "roll_back")]
        {
            let asked = format!("{release}  ? dora wants to let {release} out (412 passed). Go?");
            let canary = format!("{release}  ✓ canary");
            let chosen = format!("so eli says {choice}:");
            let (went, completed) =
                (format!("{release}  ✓ {end}"), format!("{release}  completed"));
            expect_lines(
                &told,
                &[
                    &asked,
                    "refused: E_NOT_ALLOWED by is dora, who asked for this",
                    "eli approves it:",
                    &canary,
                    &chosen,
                    &went,
                    &completed,
                ],
            );
            assert_eq!(train.state(release)["let_out_by"], "eli");
        }
        assert!(train.told().contains("web-41 is known"));
    });
}

#[test]
fn deploy_train_is_driven_by_the_commands_that_it_prints() {
    on_each_store(|world| {
        let train = Example { name: "deploy_train", world };
        for (release, say) in [("web-43", "reject"), ("web-44", "rollback"), ("web-45", "promote")]
        {
            let input = json!({ "release": release, "requested_by": "dora", "canary_errors": 9 });
            let input = input.to_string();
            train.take(&[
                "enqueue",
                "train",
                "--run",
                release,
                "--input",
                &input,
                "--allow-unknown",
            ]);
            train.work();
            let open = train.take(&["runs", "show", release]);
            if say == "reject" {
                let reject = line_with(&open, &["reject", "--comment WHY"]);
                drop(train.typed(reject, &[("WHY", "Friday")]).expect_code(0));
            } else {
                let approve = line_with(&open, &[&format!("approve {release}")]);
                drop(train.typed(approve, &[]).expect_code(0));
                train.work();
                let open = train.take(&["runs", "show", release]);
                drop(train.typed(line_with(&open, &["--answer", say]), &[]).expect_code(0));
            }
            train.work();
        }
        assert_eq!(train.state("web-43")["called_off"], true);
        assert!(train.state("web-44")["rolled_back"].is_string());
        assert!(train.state("web-45")["live"].is_string());
    });
}

#[test]
fn etl_signoff_binds_the_answer_to_what_was_shown() {
    on_each_store(|world| {
        let etl = Example { name: "etl_signoff", world };
        expect_lines(
            &etl.told(),
            &[
                r#"today={"cents":1289625,"rows":4} yesterday={"cents":61300,"rows":4}"#,
                "refused: E_ARGS_CHANGED",
                r#"today={"cents":1301625,"rows":5} yesterday={"cents":61300,"rows":4}"#,
                "refused: E_SCHEMA answer/set/today may not be edited; the question allows exclude",
                r#"answered {"choice":"edit","set":{"exclude":["r3"]}} by ann"#,
                r#"loaded: {"cents":61625,"rows":4}"#,
            ],
        );
        let rows = etl.program().args(["--json", "audit", "sales-12-01"]).run(ONE_SHOT);
        let acts: Vec<String> = rows.json_lines().iter().map(|row| text(row, "act")).collect();
        assert_eq!(acts, ["opened", "edited", "shown_anew", "decided"]);
        assert_eq!(etl.state("sales-12-01")["exclude"], json!(["r3"]));
        assert!(etl.told().ends_with("loaded: {\"cents\":61625,\"rows\":4}\n"));
    });
}

#[test]
fn an_edit_that_nobody_filled_in_changes_nothing() {
    let world = World::sqlite();
    let etl = Example { name: "etl_signoff", world: &world };
    let input = r#"{"day":"2026-12-02","yesterday":{"rows":4,"cents":61300}}"#;
    etl.take(&["enqueue", "sales", "--run", "r", "--input", input, "--allow-unknown"]);
    etl.work();
    let open = etl.take(&["runs", "show", "r"]);
    let edit = line_with(&open, &[r#"{"choice":"edit","set":{"exclude":VALUE}}"#]);
    let refused = etl.typed(edit, &[]).expect_code(3);
    assert!(refused.stderr.contains("E_JSON"), "{}", refused.stderr);
    drop(etl.typed(edit, &[("VALUE", r#"["r1","r3"]"#)]).expect_code(0));
    etl.work();
    assert_eq!(etl.state("r")["loaded"], json!({ "rows": 2, "cents": 31_375 }));
}

fn result_of(name: &str, input: &str) -> Value {
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
