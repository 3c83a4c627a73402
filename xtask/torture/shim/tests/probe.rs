//! What the shim takes from a file and what it leaves, write by write.

use std::{path::PathBuf, time::Duration};

use holdpoint_testkit::{Program, Scratch, until};
use holdpoint_torture_check::{Failure, Shim, Tail};

const SOON: Duration = Duration::from_secs(20);

struct Bench {
    scratch: Scratch,
    shim: Shim,
}

impl Bench {
    fn new() -> Self {
        let scratch = Scratch::new();
        let root = scratch.file("data");
        std::fs::create_dir(&root).expect("a new folder");
        let shim = Shim::new(&scratch.file("shim"), &[root]).expect("the shim was built");
        Self { scratch, shim }
    }

    fn file(&self) -> PathBuf {
        self.scratch.file("data").join("file")
    }

    /// Does this to the file in a process that is killed afterwards; what each act said.
    fn acts(&self, acts: &[&str]) -> Vec<String> {
        let mut program = Program::example("shim_probe").arg(self.file());
        for (name, value) in self.shim.env() {
            program = program.env(name, value);
        }
        let mut process = program.stdin(acts.join("\n")).spawn();
        until("the acts", SOON, || process.stdout().contains("done").then_some(()));
        process.kill_9();
        let said = process.stdout();
        said.lines().take(acts.len()).map(str::to_owned).collect()
    }

    fn text(&self) -> String {
        std::fs::read_to_string(self.file()).expect("the file was written")
    }

    fn cut(&self) -> String {
        self.shim.cut(Tail::Lost).expect("the logs can be read");
        self.text()
    }
}

fn check(acts: &[&str], before: &str, after: &str) {
    let bench = Bench::new();
    let said = bench.acts(acts);
    assert!(said.iter().all(|said| said == "ok"), "{said:?}");
    assert_eq!(bench.text(), before, "before the cut, {acts:?}");
    assert_eq!(bench.cut(), after, "after the cut, {acts:?}");
    // Nothing is left to take.
    assert_eq!(bench.cut(), after);
}

#[test]
fn what_was_synced_stays_and_what_was_not_goes() {
    check(&["append one", "sync", "append two"], "onetwo", "one");
    check(&["append one", "append two", "sync"], "onetwo", "onetwo");
    check(&["append one"], "one", "");
}

/// A write-ahead log that begins again at its start keeps its length: its older bytes come back.
#[test]
fn what_was_overwritten_in_place_comes_back() {
    check(&["append abcdef", "sync", "write 0 XY", "write 1 Z"], "XZcdef", "abcdef");
    check(&["append abcdef", "sync", "write 0 XY", "sync", "write 1 Z"], "XZcdef", "XYcdef");
    check(&["append abc", "sync", "write 1 VWXYZ"], "aVWXYZ", "abc");
}

#[test]
fn what_was_cut_off_comes_back() {
    check(&["append abcdef", "sync", "cut 2"], "ab", "abcdef");
    check(&["append abcdef", "sync", "cut 2", "append XY"], "abXY", "abcdef");
    check(&["append abcdef", "cut 2", "sync", "append XY"], "abXY", "ab");
    check(&["append ab", "sync", "cut 4"], "ab\0\0", "ab");
}

#[test]
fn a_second_process_goes_on_with_the_log_of_the_first() {
    let bench = Bench::new();
    bench.acts(&["append one", "sync", "append two"]);
    bench.acts(&["append three"]);
    assert_eq!(bench.cut(), "one");
    bench.acts(&["append one"]);
    bench.acts(&["sync"]);
    assert_eq!(bench.cut(), "oneone");
}

#[test]
fn the_tail_can_be_garbage() {
    let bench = Bench::new();
    bench.acts(&["append one", "sync", "append twotwotwo", "write 0 X"]);
    let taken = bench.shim.cut(Tail::Garbage).unwrap();
    let bytes = std::fs::read(bench.file()).unwrap();
    assert_eq!((bytes.len(), &bytes[..3]), (12, &b"one"[..]));
    assert_ne!(&bytes[3..], b"twotwotwo");
    assert_eq!((taken[0].writes, taken[0].cut, taken[0].restored), (2, 9, 1));
}

#[test]
fn a_sync_that_fails_makes_nothing_durable() {
    for (failure, error) in [(Failure::SyncEio, libc::EIO), (Failure::SyncEnospc, libc::ENOSPC)] {
        let mut bench = Bench::new();
        bench.shim.set_failure(Some(failure)).unwrap();
        let said = bench.acts(&["append one", "sync"]);
        assert_eq!(said, ["ok".to_owned(), error.to_string()]);
        assert_eq!(bench.shim.syncs().unwrap(), 0);
        assert_eq!(bench.cut(), "");
    }
}

#[test]
fn on_a_full_disk_nothing_grows() {
    let mut bench = Bench::new();
    bench.acts(&["append one", "sync"]);
    bench.shim.set_failure(Some(Failure::Full)).unwrap();
    let said = bench.acts(&["append two", "write 0 X", "sync"]);
    assert_eq!(said, [libc::ENOSPC.to_string(), "ok".to_owned(), "ok".to_owned()]);
    assert_eq!(bench.cut(), "Xne");
}

#[test]
fn a_file_outside_the_roots_is_left_alone() {
    let bench = Bench::new();
    let outside = Program::example("shim_probe").arg(bench.scratch.file("outside"));
    let outside =
        bench.shim.env().iter().fold(outside, |program, (name, value)| program.env(name, value));
    let process = outside.stdin("append one").spawn();
    until("the act", SOON, || process.stdout().contains("done").then_some(()));
    drop(process);
    assert!(bench.shim.cut(Tail::Lost).unwrap().is_empty());
    assert_eq!(std::fs::read_to_string(bench.scratch.file("outside")).unwrap(), "one");
}
