//! Workers that die, freeze and compete: what was committed stays, and nobody acts twice.

use std::{collections::BTreeMap, time::Duration};

use holdpoint_testkit::{Process, Program, Signal, until};

use crate::world::{RUNS, World, on_each_store, text};

/// The process of the one live worker.
fn worker_pid(world: &World) -> u32 {
    until("a worker to be live", RUNS, || {
        let workers = world.lines(&["workers"]);
        let live = workers.iter().find(|worker| worker["state"] == "live")?;
        live["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok())
    })
}

/// Sends a signal to a process that is a grandchild of the test.
fn kill(signal: &str, pid: u32) {
    let pid = pid.to_string();
    drop(Program::new("kill").args(["-s", signal, &pid]).run(RUNS).expect_code(0));
}

#[test]
fn a_killed_child_costs_less_than_a_lease() {
    on_each_store(|world| {
        let run = world.enqueue("slow", r#"{"n":1}"#);
        let _worker = world.worker(&["--lease", "30s"]);
        world.until_started(&run, "slow");
        kill("KILL", worker_pid(world));
        let view = world.until_status(&run, "completed");
        assert_eq!(world.path(&run), ["a", "slow", "c"]);
        assert_eq!(world.ledger().count(&run, "a", "start"), 1, "what was committed stays");
        assert_eq!(world.ledger().count(&run, "slow", "start"), 2);
        assert_eq!(world.ledger().count(&run, "slow", "done"), 1);
        assert_eq!(view["counters"]["lost_workers"], 1, "{view}");
        assert_eq!(view["attempts"][0]["end"], "lost(signal 9)", "{view}");
    });
}

/// Supervisor and child die together, as with their machine: only the lease tells.
#[test]
fn a_killed_machine_costs_a_lease() {
    on_each_store(|world| {
        // It makes the store, in which the worker is looked for.
        world.enqueue("lin", "{}");
        let mut first = world.worker(&["--lease", "2s"]);
        // Known before, so that nothing but the kill comes between the node's start and its end.
        let both = [first.pid(), worker_pid(world)].map(|pid| pid.to_string());
        let run = world.enqueue("slow", r#"{"n":2}"#);
        world.until_started(&run, "slow");
        // Frozen first: whichever died before the other would leave that a moment to say so.
        for signal in ["STOP", "KILL"] {
            let kill = Program::new("kill").args(["-s", signal]).args(&both);
            drop(kill.run(RUNS).expect_code(0));
        }
        first.wait(RUNS);
        let _second = world.worker(&["--lease", "2s"]);
        let view = world.until_status(&run, "completed");
        assert_eq!(world.path(&run), ["a", "slow", "c"]);
        assert_eq!(world.ledger().count(&run, "a", "start"), 1, "what was committed stays");
        assert_eq!(world.ledger().count(&run, "c", "done"), 1);
        assert_eq!(view["attempts"][0]["end"], "lost(lease expired)", "{view}");
        assert_ne!(view["attempts"][0]["worker"], view["attempts"][1]["worker"], "{view}");
    });
}

#[test]
fn a_process_that_aborts_again_and_again_ends_in_a_crash_loop() {
    on_each_store(|world| {
        let run = world.enqueue("abort", "{}");
        let fine = world.enqueue("lin", "{}");
        let _worker = world.worker(&["--max-crashes", "2"]);
        let view = world.until_status(&run, "failed");
        assert_eq!(view["reason"]["code"], "crash_loop", "{view}");
        world.until_status(&fine, "completed");
        assert_eq!(world.ledger().count(&run, "abort", "start"), 2);
    });
}

#[test]
fn a_branch_that_aborts_once_does_not_repeat_its_siblings() {
    on_each_store(|world| {
        let run = world.enqueue("fan", r#"{"n":4,"crash_at":2}"#);
        let _worker = world.worker(&[]);
        let view = world.until_status(&run, "completed");
        assert_eq!(view["state"]["items"], serde_json::json!([0, 1, 2, 3]));
        assert_eq!(world.ledger().count(&run, "plan", "start"), 1);
    });
}

#[test]
fn an_unsafe_effect_is_asked_about_after_a_crash() {
    on_each_store(|world| {
        let run = world.enqueue("unsafe", r#"{"n":30}"#);
        let _worker = world.worker(&[]);
        world.until_started(&run, "unsafe");
        kill("KILL", worker_pid(world));
        let view = world.until_status(&run, "parked");
        assert_eq!(view["interrupts"][0]["kind"], "uncertain", "{view}");
        world.json(&["signal", &run, "--answer", r#"{"result":{"charged":true}}"#]);
        let view = world.until_status(&run, "completed");
        assert_eq!(view["state"]["charged"], true);
        assert_eq!(world.ledger().count(&run, "unsafe", "start"), 1);
    });
}

/// Freezes a worker outside of a write. One that is frozen inside a write holds SQLite's lock,
/// and nobody writes before it wakes or is killed: that is another matter than its lease.
fn freeze(world: &World, worker: &mut Process) {
    until("the worker to be frozen outside of a write", RUNS, || {
        worker.sigstop();
        let probe = world.call(&["queues", "resume", "probe"]);
        if probe.code() != Some(0) {
            worker.sigcont();
        }
        (probe.code() == Some(0)).then_some(())
    });
}

#[test]
fn a_frozen_worker_that_wakes_changes_nothing() {
    on_each_store(|world| {
        let run = world.enqueue("slow", r#"{"n":8}"#);
        let mut zombie = world.worker(&["--no-supervisor", "--lease", "4s"]);
        world.until_started(&run, "slow");
        freeze(world, &mut zombie);
        let _second = world.worker(&["--no-supervisor", "--lease", "4s"]);
        let view = world.until_status(&run, "completed");
        zombie.sigcont();
        zombie.sigterm();
        zombie.wait(RUNS);
        assert_eq!(world.show(&run)["seq"], view["seq"], "the zombie wrote nothing");
        assert_eq!(world.path(&run), ["a", "slow", "c"]);
        assert_eq!(world.ledger().count(&run, "a", "start"), 1);
        assert_eq!(world.ledger().count(&run, "c", "start"), 1, "it started nothing either");
    });
}

#[test]
fn sigterm_hands_back_at_once_what_it_cannot_end() {
    on_each_store(|world| {
        let run = world.enqueue("slow", r#"{"n":20}"#);
        let mut first = world.worker(&["--drain", "200ms", "--lease", "30s"]);
        world.until_started(&run, "slow");
        first.sigterm();
        assert_eq!(first.wait(RUNS).code(), Some(0), "{}", first.stderr());
        let view = world.show(&run);
        assert_eq!(
            (&view["status"], &view["counters"]["lost_workers"]),
            (&"queued".into(), &0.into())
        );
        let mut idle = world.worker(&["--no-supervisor", "--queues", "other"]);
        worker_pid(world);
        idle.signal(Signal::Interrupt);
        assert_eq!(idle.wait(Duration::from_secs(10)).code(), Some(0));
    });
}

#[test]
fn two_workers_run_each_node_of_500_runs_once() {
    on_each_store(|world| {
        let lines: String =
            (0..500).map(|n| format!("{{\"graph\":\"lin\",\"run\":\"r{n}\"}}\n")).collect();
        let batch = world.program().args(["--json", "enqueue", "--batch", "-"]).stdin(lines);
        assert_eq!(batch.run(RUNS).expect_code(0).json_lines().len(), 500);
        let mut workers = [0, 1].map(|_| world.worker(&["--exit-when-idle"]));
        for worker in &mut workers {
            assert_eq!(worker.wait(RUNS * 2).code(), Some(0), "{}", worker.stderr());
        }
        let stats = world.json(&["stats"]);
        assert_eq!(stats["counts"]["completed"], 500, "{stats}");
        let mut counts: BTreeMap<(String, String, String), usize> = BTreeMap::new();
        for entry in world.ledger().entries() {
            *counts.entry((entry.run, entry.node, entry.effect)).or_default() += 1;
        }
        assert_eq!(counts.len(), 500 * 3 * 2);
        assert!(counts.values().all(|count| *count == 1), "a node ran twice");
        let doctor = world.lines(&["doctor"]);
        assert!(doctor.iter().all(|finding| text(finding, "level") != "bad"), "{doctor:?}");
    });
}
