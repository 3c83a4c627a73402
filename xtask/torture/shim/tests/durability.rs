//! The table of durability modes, measured: what each loses of what it acknowledged, when its
//! processes are killed and when the power goes.
//!
//! Real writers on a real store, judged by the total queue. Each test asserts what its mode
//! promises, and that a mode which promises less really loses: the cut bites. To see the figures:
//! `cargo test -p holdpoint-torture-shim --test durability -- --nocapture`.

mod bench;

use std::time::Duration;

use bench::{Bench, Mode};
use holdpoint_torture_check::{Failure, Tail};

/// The acknowledgements of a round, at least.
const ACKS: usize = 1_000;

#[test]
fn sqlite_full_loses_nothing() {
    let mut bench = Bench::new(Mode::SqliteFull, 2);
    for round in 0..3 {
        bench.write(ACKS);
        match round {
            0 => bench.kill(),
            1 => bench.cut(Tail::Lost),
            _ => bench.cut(Tail::Garbage),
        }
        bench.judge();
    }
    assert_eq!((bench.kills.lost, bench.cuts.lost), (0, 0));
    assert!(bench.kills.acknowledged >= ACKS && bench.cuts.acknowledged >= 2 * ACKS);
}

/// What a process has written survives its death in every mode; the power takes what was not
/// synced. Shows that the same cut which SQLite with FULL survives does bite.
#[test]
fn sqlite_normal_loses_in_a_power_cut_alone() {
    let mut bench = Bench::new(Mode::SqliteNormal, 2);
    bench.write(ACKS);
    bench.kill();
    bench.judge();
    assert_eq!(bench.kills.lost, 0);
    bench.write(ACKS);
    bench.cut(Tail::Lost);
    bench.judge();
    assert!(bench.cuts.lost > 0, "the cut took nothing");
}

#[test]
fn redis_always_loses_nothing() {
    let mut bench = Bench::new(Mode::RedisAlways, 1);
    for round in 0..4 {
        bench.write(ACKS);
        if round % 2 == 0 {
            bench.kill()
        } else {
            bench.cut(Tail::Lost)
        }
        bench.judge();
    }
    assert_eq!((bench.kills.lost, bench.cuts.lost), (0, 0));
    assert!(bench.kills.acknowledged >= 2 * ACKS && bench.cuts.acknowledged >= 2 * ACKS);
}

/// The append-only file is rewritten while writers work, so a cut also meets a new file, and the
/// manifest that names it.
#[test]
fn redis_always_loses_nothing_while_its_file_is_rewritten() {
    let mut bench = Bench::new(Mode::RedisAlways, 1);
    for _ in 0..3 {
        bench.write(ACKS / 4);
        bench.rewrite();
        bench.write_on(ACKS / 4);
        bench.cut(Tail::Lost);
        bench.judge();
    }
    assert_eq!(bench.cuts.lost, 0);
}

/// A disk that syncs slowly makes this mode slow, and no more.
#[test]
fn redis_always_loses_nothing_on_a_slow_disk() {
    let mut bench = Bench::new(Mode::RedisAlways, 1);
    bench.shim.set_delay(Duration::from_millis(20)).unwrap();
    bench.write(ACKS / 10);
    bench.kill();
    bench.judge();
    bench.write(ACKS / 10);
    bench.cut(Tail::Lost);
    bench.judge();
    assert_eq!((bench.kills.lost, bench.cuts.lost), (0, 0));
}

/// The server ends itself when it cannot sync what it is to acknowledge.
#[test]
fn redis_always_acknowledges_nothing_that_it_cannot_sync() {
    for failure in [Failure::SyncEio, Failure::SyncEnospc] {
        let mut bench = Bench::new(Mode::RedisAlways, 1);
        bench.write(ACKS / 4);
        bench.shim.set_failure(Some(failure)).unwrap();
        bench.await_end_of_writers();
        bench.shim.set_failure(None).unwrap();
        bench.cut(Tail::Lost);
        bench.judge();
        assert_eq!(bench.cuts.lost, 0, "{failure:?}");
    }
}

#[test]
fn sqlite_full_acknowledges_nothing_that_it_cannot_sync() {
    for failure in [Failure::SyncEio, Failure::Full] {
        let mut bench = Bench::new(Mode::SqliteFull, 1);
        bench.write(ACKS / 4);
        bench.shim.set_failure(Some(failure)).unwrap();
        bench.await_end_of_writers();
        bench.shim.set_failure(None).unwrap();
        bench.cut(Tail::Lost);
        bench.judge();
        assert_eq!(bench.cuts.lost, 0, "{failure:?}");
    }
}

/// While a sync is under way this mode holds back, for up to 2 s, what it has acknowledged; so on a
/// slow disk killing the server is enough. On a quick one both figures are small, and 0 at times.
#[test]
fn redis_everysec_loses_on_a_slow_disk_even_without_a_power_cut() {
    let mut bench = Bench::new(Mode::RedisEverysec, 1);
    bench.write(ACKS);
    bench.kill();
    bench.judge();
    bench.write(ACKS);
    bench.cut(Tail::Lost);
    bench.judge();
    let mut slow = Bench::new(Mode::RedisEverysec, 1);
    slow.shim.set_delay(Duration::from_millis(1_800)).unwrap();
    slow.write_until_a_sync_is_under_way(ACKS);
    slow.kill();
    slow.judge();
    assert!(slow.kills.lost > 0, "a slow disk lost nothing");
}

#[test]
fn redis_without_syncs_loses_in_a_power_cut() {
    let mut bench = Bench::new(Mode::RedisNo, 1);
    bench.write(ACKS);
    bench.kill();
    bench.judge();
    assert_eq!(bench.kills.lost, 0);
    bench.write(ACKS);
    bench.cut(Tail::Lost);
    bench.judge();
    assert!(bench.cuts.lost > 0, "the cut took nothing");
}
