//! The inbox: listing, filtering and sorting open questions, answering all that fit, watching
//! them, and going through them at a terminal.

use holdpoint_testkit::{Process, Program, Signal, Terminal, until};
use serde_json::{Value, json};

use crate::world::{ONE_SHOT, RUNS, World, on_each_store, text};

/// A refund that waits for its approval.
fn refund(world: &World, run: &str, amount: u32) {
    let input = json!({ "amount": amount, "customer": "Ann" }).to_string();
    let args = ["enqueue", "refund", "--run", run, "--input", &input, "--tag", "team=a"];
    world.json(&[&args[..], &["--allow-unknown"]].concat());
    world.work();
}

fn waiting(world: &World, graph: &str, run: &str) {
    world.json(&["enqueue", graph, "--run", run, "--allow-unknown"]);
    world.work();
}

/// The runs of a page of `gates`, without its cursor.
fn runs(rows: &[Value]) -> Vec<String> {
    let rows = rows.iter().filter(|row| row["next"].is_null());
    rows.map(|row| text(row, "run")).collect()
}

fn listed(world: &World, args: &[&str]) -> Vec<String> {
    runs(&world.lines(&[&["gates"], args].concat()))
}

/// The program at a terminal, without colours.
fn at_terminal(world: &World, args: &[&str]) -> Terminal {
    world.program().env("NO_COLOR", "1").env("USER", "ann").args(args).spawn_at_terminal()
}

fn sees(terminal: &Terminal, what: &str) {
    until(&format!("{what:?} to be shown"), RUNS, || terminal.seen().contains(what).then_some(()));
}

#[test]
fn questions_are_filtered_sorted_and_paged() {
    on_each_store(|world| {
        waiting(world, "ask", "r1");
        waiting(world, "votes", "r2");
        refund(world, "r3", 50);
        for (args, expect) in [
            (&[][..], &["r1", "r2", "r3"][..]),
            (&["--sort", "age"], &["r1", "r2", "r3"]),
            (&["--sort", "deadline", "--limit", "1"], &["r3"]),
            (&["--graph", "refund"], &["r3"]),
            (&["--tag", "team=a"], &["r3"]),
            (&["--tag", "team=b"], &[]),
            (&["--older-than", "1h"], &[]),
            (&["--older-than", "1ms", "--graph", "ask"], &["r1"]),
            (&["--group", "finance", "--graph", "refund"], &["r3"]),
            (&["--group", "sales", "--graph", "refund"], &[]),
            (&["--group", "sales", "--group", "finance", "--tag", "team=a"], &["r3"]),
            (&["--assignee", "bob", "--graph", "votes"], &["r2"]),
            (&["--assignee", "ann", "--graph", "votes"], &[]),
        ] {
            assert_eq!(listed(world, args), expect, "{args:?}");
        }
        for sort in ["age", "deadline"] {
            let whole = listed(world, &["--sort", sort]);
            let (mut seen, mut after) = (Vec::new(), None::<String>);
            loop {
                let mut args = vec!["gates", "--sort", sort, "--limit", "1"];
                args.extend(after.iter().flat_map(|after| ["--after", after]));
                let rows = world.lines(&args);
                seen.extend(runs(&rows));
                match rows.last().and_then(|row| row["next"].as_str()) {
                    Some(next) => after = Some(next.to_owned()),
                    None => break,
                }
            }
            assert_eq!((seen, whole.len()), (whole, 3), "{sort}");
        }
        for (args, code) in [
            (&["--sort", "name"][..], 2),
            (&["--older-than", "long"], 3),
            (&["--graph", "a b"], 3),
            (&["--after", "x"], 3),
        ] {
            drop(world.call(&[&["gates"], args].concat()).expect_code(code));
        }
    });
}

#[test]
fn people_read_age_deadline_votes_and_whom_it_asks() {
    let world = World::sqlite();
    waiting(&world, "votes", "r1");
    refund(&world, "r2", 50);
    world.json(&["approve", "r1", "--by", "bob"]);
    world.work();
    let list = world.program().arg("gates").run(ONE_SHOT).expect_code(0);
    let lines: Vec<&str> = list.stdout.lines().collect();
    let [head, r1, r2] = lines[..] else { panic!("{}", list.stdout) };
    let column = |name: &str| head.find(name).unwrap();
    for (name, first, second) in [
        ("DUE", " ", "in 2d"),
        ("VOTES", "1 of 2", " "),
        ("ASKED", "bob", "ann, finance"),
        ("QUESTION", "May two run c?", "Refund 50 to Ann?"),
    ] {
        assert!(r1[column(name)..].starts_with(first), "{name}: {}", list.stdout);
        assert!(r2[column(name)..].starts_with(second), "{name}: {}", list.stdout);
    }
    assert!(r1[column("OPENED")..].contains("s ago"), "{}", list.stdout);
    assert!(list.stderr.contains("gates pick"), "{}", list.stderr);
}

/// The commands that are shown for a choice of one's own and for an edit were refused by the
/// question's schema: they gave the word alone.
#[test]
fn each_command_that_is_shown_for_an_answer_is_taken() {
    let world = World::sqlite();
    for (n, (sign, node)) in
        [("approve ", "c"), ("reject ", "rejected"), ("edit", "c"), ("later", "c")]
            .into_iter()
            .enumerate()
    {
        let run = format!("r{n}");
        refund(&world, &run, 50);
        let command = type_shown(&world, &run, sign);
        world.work();
        assert_eq!(world.path(&run), ["a", node], "{command}");
    }
}

/// Types a command that the run's card shows, with 5 for what is to be filled in.
fn type_shown(world: &World, run: &str, sign: &str) -> String {
    let card = world.program().args(["runs", "show", run]).run(ONE_SHOT).expect_code(0);
    let mut commands = card.stdout.lines().filter_map(|line| line.trim().split_once(" -- "));
    let (_, command) = commands.find(|(_, rest)| rest.contains(sign)).unwrap();
    let command = command.replace("VALUE", "5");
    let path = holdpoint_testkit::example_path("fixtures");
    let shell = Program::new("sh").args(["-c", &format!("'{}' {command}", path.display())]);
    drop(shell.env("HOLDPOINT_STORE", world.url()).run(ONE_SHOT).expect_code(0));
    command
}

/// The same for a budget, of which the word alone was shown too.
#[test]
fn each_command_that_is_shown_for_a_budget_is_taken() {
    let world = World::sqlite();
    for (run, sign, status) in [("r1", "raise_by", "completed"), ("r2", "fail", "failed")] {
        world.json(&["enqueue", "lin", "--run", run, "--budget-steps", "1"]);
        world.work();
        let command = type_shown(&world, run, sign);
        world.work();
        assert_eq!(world.show(run)["status"], status, "{command}");
    }
}

#[test]
fn all_that_match_are_shown_and_then_answered() {
    on_each_store(|world| {
        for run in ["r1", "r2"] {
            refund(world, run, 50);
        }
        waiting(world, "ask_in", "r3");
        let approve = |args: &[&str]| world.call(&[&["approve", "--all-matching"], args].concat());
        let refunds = ["--graph", "refund"];
        let dry = approve(&["--graph", "refund", "--dry-run"]).expect_code(0).json_lines();
        assert_eq!(
            (runs(&dry), dry[0]["args"]["amount"].clone()),
            (vec!["r1".into(), "r2".into()], json!(50))
        );
        assert_eq!(runs(&approve(&["--dry-run"]).expect_code(0).json_lines()), ["r1", "r2"]);
        for args in [&[][..], &refunds] {
            let refused = approve(args).expect_code(2);
            assert!(refused.stderr.contains("--yes") && refused.stdout.is_empty(), "{refused:?}");
        }
        drop(world.call(&["approve", "r1", "--graph", "refund"]).expect_code(2));
        drop(approve(&["r1"]).expect_code(2));
        drop(approve(&["--key", "k", "--yes"]).expect_code(2));
        assert_eq!(listed(world, &[]), ["r1", "r2", "r3"], "nothing was answered");
        let reject = ["reject", "--all-matching", "--graph", "refund", "--yes", "--by", "ann"];
        let refused = world.call(&reject).expect_code(3).json_lines();
        assert_eq!(runs(&refused), ["r1", "r2"]);
        assert_eq!(refused[1]["error"]["code"], "E_SCHEMA", "it needs a comment");
        let done = approve(&["--yes", "--by", "ann", "--group", "finance"]).expect_code(0);
        let done = done.json_lines();
        assert_eq!(runs(&done), ["r1", "r2"], "r3 is no question for a yes or a no");
        assert!(
            done.iter().all(|row| row["outcome"] == "delivered" && row["interrupt"].is_string())
        );
        world.work();
        assert_eq!(
            (world.path("r1"), listed(world, &[])),
            (vec!["a".into(), "c".into()], vec!["r3".into()])
        );
        assert_eq!(approve(&["--graph", "refund", "--yes"]).expect_code(0).stdout, "");
    });
}

#[test]
fn a_vote_is_told_as_one_and_a_second_of_the_same_person_is_refused() {
    let world = World::sqlite();
    waiting(&world, "votes", "r1");
    let approve = ["approve", "--all-matching", "--graph", "votes", "--yes", "--by", "ann"];
    assert_eq!(world.lines(&approve)[0]["outcome"], "voted");
    world.work();
    let again = world.call(&approve).expect_code(5).json_lines();
    assert_eq!(again[0]["error"]["code"], "E_VOTED");
}

#[test]
fn a_question_that_is_edited_after_it_was_shown_is_not_approved() {
    on_each_store(|world| {
        for run in ["r1", "r2"] {
            refund(world, run, 50);
        }
        let args = ["approve", "--all-matching", "--graph", "refund"];
        let mut terminal = at_terminal(world, &args);
        sees(&terminal, "approve 2 questions as ann? [y/n]");
        assert!(terminal.seen().contains("Refund 50 to Ann?"), "{}", terminal.seen());
        let seq = world.show("r1")["seq"].to_string();
        world.json(&["runs", "edit", "r1", "--update", r#"{"amount":9000}"#, "--if-seq", &seq]);
        terminal.press("y\n");
        let exit = terminal.wait(ONE_SHOT).code();
        sees(&terminal, "E_ARGS_CHANGED");
        assert_eq!(exit, Some(5), "{}", terminal.seen());
        world.work();
        assert_eq!(world.show("r1")["status"], "parked");
        assert_eq!(world.show("r2")["status"], "completed");
        let mut terminal = at_terminal(world, &args);
        sees(&terminal, "approve 1 question as ann? [y/n]");
        terminal.press("\n");
        assert_eq!(terminal.wait(ONE_SHOT).code(), Some(2), "what is no yes answers nothing");
        assert_eq!(listed(world, &[]), ["r1"]);
    });
}

fn watch(world: &World, args: &[&str]) -> Process {
    world.program().args(["--json", "gates", "watch"]).args(args).spawn()
}

/// Waits for a piece of news of a run.
fn news(watch: &Process, run: &str, kind: &str) -> Value {
    until(&format!("{kind} of {run}"), RUNS, || {
        watch.json_lines().into_iter().find(|line| line["run"] == run && line["type"] == kind)
    })
}

#[test]
fn a_watcher_tells_what_opens_and_what_becomes_of_it() {
    on_each_store(|world| {
        waiting(world, "ask", "r2");
        let mut watch = watch(world, &["--graph", "votes"]);
        let _worker = world.worker(&[]);
        world.json(&["enqueue", "votes", "--run", "r1", "--allow-unknown"]);
        assert_eq!(news(&watch, "r1", "opened")["question"], "May two run c?");
        assert_eq!(news(&watch, "r1", "reminded")["also"], json!(["boss"]));
        world.json(&["approve", "r1", "--by", "bob"]);
        assert_eq!(news(&watch, "r1", "voted")["by"], "bob");
        world.json(&["approve", "r1", "--by", "eve"]);
        let answered = news(&watch, "r1", "answered");
        assert_eq!(
            (&answered["by"], &answered["answer"]["approve"]),
            (&json!("eve"), &json!(true))
        );
        world.json(&["enqueue", "votes", "--run", "r3"]);
        news(&watch, "r3", "opened");
        world.json(&["runs", "cancel", "r3"]);
        assert_eq!(news(&watch, "r3", "closed")["status"], "cancelled");
        watch.signal(Signal::Interrupt);
        assert_eq!(watch.wait(ONE_SHOT).code(), Some(0));
        let all = watch.json_lines();
        assert!(all.iter().all(|line| line["run"] != "r2"), "{all:?}");
        let opened = all.iter().filter(|line| line["type"] == "opened").count();
        assert_eq!(opened, 2, "each opens once: {all:?}");
    });
}

#[test]
fn a_watcher_of_more_than_a_page_sees_old_and_new_ones_change() {
    let world = World::sqlite();
    let lines: String =
        (0..205).map(|n| format!("{{\"run\":\"r{n}\",\"graph\":\"ask\"}}\n")).collect();
    let file = world.scratch().file("batch.jsonl");
    std::fs::write(&file, lines).unwrap();
    let batch = ["enqueue", "--batch", file.to_str().unwrap(), "--allow-unknown"];
    drop(world.call(&batch).expect_code(0));
    world.work();
    let watch = watch(&world, &[]);
    until("all to be shown", RUNS, || (watch.json_lines().len() == 205).then_some(()));
    let _worker = world.worker(&[]);
    let order = runs(&watch.json_lines());
    for run in [&order[0], &order[199], &order[204]] {
        world.json(&["approve", run, "--by", "ann"]);
        assert_eq!(news(&watch, run, "answered")["by"], "ann");
    }
    world.json(&["enqueue", "ask", "--run", "new"]);
    news(&watch, "new", "opened");
    assert_eq!(watch.json_lines().len(), 209, "nothing is told twice");
}

#[test]
fn questions_are_gone_through_with_single_keys() {
    on_each_store(|world| {
        for (run, amount) in [("r1", 50), ("r2", 60), ("r3", 70)] {
            refund(world, run, amount);
        }
        let mut terminal = at_terminal(world, &["gates", "pick", "--group", "finance"]);
        sees(&terminal, "3 open questions");
        assert!(!terminal.is_plain(), "keys come one by one");
        terminal.press("\r");
        sees(&terminal, "a approve · r reject · e edit · l later");
        terminal.press("a");
        sees(&terminal, "✓ answered r1 as ann");
        sees(&terminal, "1 of 2  r2");
        terminal.press("r");
        sees(&terminal, "reject comment: ");
        terminal.press("twice the limit\r");
        sees(&terminal, "✓ answered r2 as ann");
        sees(&terminal, "1 of 1  r3");
        terminal.press("e\u{15}{\"amount\": 7}\r");
        sees(&terminal, "- amount: 70\r\n+ amount: 7\r\n");
        terminal.press("\r");
        sees(&terminal, "no open questions are left");
        assert_eq!(terminal.wait(ONE_SHOT).code(), Some(0));
        assert!(terminal.is_plain(), "the terminal is as it was");
        world.work();
        let ends = ["r1", "r2", "r3"].map(|run| world.path(run).pop().unwrap());
        assert_eq!(ends, ["c", "rejected", "c"]);
        assert_eq!(world.show("r3")["state"]["amount"], 7);
        let decided = world.lines(&["audit", "r2"]).pop().unwrap();
        let expect = json!([["ann"], ["twice the limit"], ["finance"]]);
        assert_eq!(json!([[decided["by"]], [decided["comment"]], decided["groups"]]), expect);
    });
}

#[test]
fn a_refusal_is_shown_where_the_question_was() {
    let world = World::sqlite();
    for run in ["r1", "r2"] {
        refund(&world, run, 50);
    }
    let mut terminal = at_terminal(&world, &["gates", "pick"]);
    sees(&terminal, "2 open questions");
    terminal.press("\r");
    sees(&terminal, "1 of 2  r1");
    let seq = world.show("r1")["seq"].to_string();
    world.json(&["runs", "edit", "r1", "--update", r#"{"amount":9000}"#, "--if-seq", &seq]);
    terminal.press("a");
    sees(&terminal, "E_ARGS_CHANGED");
    sees(&terminal, "Refund 9000 to Ann?");
    world.json(&["approve", "r1", "--by", "bob"]);
    terminal.press("a");
    sees(&terminal, "E_DECIDED");
    sees(&terminal, "1 of 1  r2");
    terminal.press("q");
    assert_eq!(terminal.wait(ONE_SHOT).code(), Some(0));
    world.work();
    assert_eq!(listed(&world, &[]), ["r2"]);
}

#[test]
fn the_picker_gives_the_terminal_back_however_it_ends() {
    let world = World::sqlite();
    refund(&world, "r1", 50);
    let ends: [(&str, Option<Signal>); 4] = [
        ("q", None),
        ("\u{3}", None),
        ("", Some(Signal::Terminate)),
        ("", Some(Signal::Interrupt)),
    ];
    for (keys, signal) in ends {
        let mut terminal = at_terminal(&world, &["gates", "pick"]);
        sees(&terminal, "1 open question");
        assert!(!terminal.is_plain());
        terminal.press(keys);
        if let Some(signal) = signal {
            terminal.signal(signal);
        }
        assert_eq!(terminal.wait(ONE_SHOT).code(), Some(0), "{keys:?} {signal:?}");
        assert!(terminal.is_plain(), "{keys:?} {signal:?}");
    }
    assert_eq!(listed(&world, &[]), ["r1"]);
}

#[test]
fn the_picker_needs_a_terminal() {
    let world = World::sqlite();
    refund(&world, "r1", 50);
    for args in [&["gates", "pick"][..], &["--json", "gates", "pick"]] {
        let refused = world.program().args(args).run(ONE_SHOT).expect_code(2);
        assert!(refused.stderr.contains("needs a terminal"), "{}", refused.stderr);
    }
    let mut terminal = at_terminal(&world, &["--json", "gates", "pick"]);
    assert_eq!(terminal.wait(ONE_SHOT).code(), Some(2));
    assert!(terminal.is_plain());
}
