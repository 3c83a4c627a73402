//! The doctor: each kind of damage is made by hand, found, kept in the backup, and mended; what is
//! sound stays as it is to the byte.
#![expect(clippy::unwrap_used, reason = "a failed call fails the test")]

mod world;

use std::collections::BTreeMap;

use holdpoint_storage::{Claim as _, Damage, Inspect as _, Level, Maintain as _};
use holdpoint_storage_redis::RedisStore;
use world::{World, claim};

type Dump = BTreeMap<String, Vec<u8>>;

/// Mends until nothing is left that can be mended; all that was found.
async fn repair(world: &World) -> Vec<Damage> {
    let mut found = Vec::new();
    for _ in 0..10 {
        let faults = mendable(&world.store).await;
        if faults.is_empty() {
            return found;
        }
        for fault in &faults {
            backup_is_exact(world, fault);
        }
        let mended = world.store.repair(&faults).await.unwrap();
        let last = faults.iter().zip(&mended).filter(|(_, is_mended)| !**is_mended);
        // What another repair changed is found again if it is still there.
        assert!(last.clone().count() < faults.len(), "{:?}", last.collect::<Vec<_>>());
        found.extend(faults);
    }
    panic!("it does not end: {found:?}");
}

async fn mendable(store: &RedisStore) -> Vec<Damage> {
    let faults = store.faults().await.unwrap();
    faults.into_iter().filter(Damage::is_mendable).collect()
}

/// The values that a fault keeps are those that the server has.
fn backup_is_exact(world: &World, fault: &Damage) {
    for change in &fault.changes {
        let key = world.key(&change.place);
        let has: Option<String> = match change.kind.as_str() {
            "z" => world.ask(redis::cmd("ZSCORE").arg(key).arg(&change.item)),
            "h" => world.ask(redis::cmd("HGET").arg(key).arg(&change.item)),
            "k" => world.ask(redis::cmd("GET").arg(key)),
            "n" => world.ask(redis::cmd("TYPE").arg(key)),
            "s" => {
                let is: u8 = world.ask(redis::cmd("SISMEMBER").arg(key).arg(&change.item));
                (is == 1).then(|| "1".to_owned())
            }
            "l" => {
                let at: Option<u64> = world.ask(redis::cmd("LPOS").arg(key).arg(&change.item));
                at.map(|_| "1".to_owned())
            }
            "a" | "A" => None,
            "count" => world.ask(redis::cmd("HGET").arg(key).arg(&change.item)),
            other => panic!("a change of kind {other}"),
        };
        let missing = (change.kind == "count").then(|| "0".to_owned());
        assert_eq!(change.before, has.or(missing), "{fault:?}");
    }
}

/// All keys but the tokens and the ends of leases, which a repair cannot know.
fn dump(world: &World) -> Dump {
    let mut dump = world.dump();
    dump.retain(|key, _| !key.starts_with("w:") && !key.starts_with("was:") && key != "lse");
    dump
}

/// Does damage to a sound store: it is found by its kind and by what it is about, mended, and
/// everything is as it was.
async fn check(damage: &[&str], kind: &str, about: &str) {
    check_beside(&[], damage, kind, about).await;
}

/// The same after something sound was added.
async fn check_beside(also: &[&str], damage: &[&str], kind: &str, about: &str) {
    let world = World::sound().await;
    if !also.is_empty() {
        world.run(also);
    }
    let sound = dump(&world);
    assert!(mendable(&world.store).await.is_empty(), "{:?}", world.store.faults().await);
    world.run(damage);
    let findings = world.store.check().await.unwrap();
    let is_told = |f: &holdpoint_storage::Finding| f.level == Level::Bad && f.text.contains(about);
    assert!(findings.iter().any(is_told), "{damage:?}: {findings:?}");
    let found = repair(&world).await;
    let is_it = |fault: &Damage| fault.check == kind && fault.text.contains(about);
    assert!(found.iter().any(is_it), "{damage:?}: {found:?}");
    let findings = world.store.check().await.unwrap();
    let bad: Vec<_> = findings.iter().filter(|found| found.level == Level::Bad).collect();
    assert!(bad.is_empty(), "{damage:?}: {bad:?}");
    let mended = dump(&world);
    let differ = |key: &&String| sound.get(*key) != mended.get(*key);
    let keys: Vec<&String> = sound.keys().chain(mended.keys()).filter(differ).collect();
    assert!(keys.is_empty(), "{damage:?} left {keys:?}");
    let leases: Vec<String> = world.ask(redis::cmd("ZRANGE").arg(world.key("lse")).arg(0).arg(-1));
    assert_eq!(leases, ["running"]);
}

/// C51: an entry without a run.
#[tokio::test]
async fn entries_without_run_are_removed() {
    for place in
        ["due", "wak", "lse", "prk", "exp", "fin", "can", "dead.l", "ix", "bad", "q:default|flow|"]
    {
        check(&["ZADD", place, "5", "ghost"], "orphan", "ghost").await;
    }
    for list in ["ou:all", "oo:some", "od:g:flow", "ou:a:eve"] {
        check(&["ZADD", list, "5", "q9 ghost"], "orphan", "ghost").await;
        check(&["ZADD", list, "5", "q9 parked"], "orphan", "q9").await;
    }
    check(&["ZADD", "oo:some", "5", "q1 parked"], "orphan", "oo:some").await;
    check(&["ZADD", "ou:m:ops", "5", "q1 asked"], "orphan", "ou:m:ops").await;
    check(&["ZADD", "t:a", "5", "ghost"], "orphan", "ghost").await;
    check(&["ZADD", "x:s1", "5", "ghost"], "orphan", "ghost").await;
    check(&["ZADD", "sx", "0", "s9"], "orphan", "s9").await;
    check(&["SADD", "h:w1", "ghost"], "orphan", "ghost").await;
    check(&["SADD", "h:w9", "queued"], "orphan", "queued").await;
    check(&["LPUSH", "s:s1", "ghost"], "session", "ghost").await;
}

/// C51: a run in two places, or in a wrong one.
#[tokio::test]
async fn double_entries_are_removed() {
    for (place, run) in [
        ("due", "queued"),
        ("lse", "queued"),
        ("prk", "scheduled"),
        ("wak", "queued"),
        ("exp", "done"),
        ("fin", "failed"),
        ("dead", "parked"),
        ("q:default|flow|", "running"),
        ("q:other|flow|", "queued"),
        ("q:default|flow|", "second"),
    ] {
        let kind = if place == "q:other|flow|" { "orphan" } else { "misplaced" };
        if kind == "orphan" {
            // A lane is looked at when it ever held a run.
            let lane = ["SADD", "l", "other|flow|"];
            check_beside(&lane, &["ZADD", place, "5", run], kind, run).await;
        } else {
            check(&["ZADD", place, "5", run], kind, run).await;
        }
    }
    check(&["ZADD", "due", "5", "scheduled"], "misplaced", "scheduled").await;
    check(&["ZADD", "ou:all", "5", "q1 parked"], "misplaced", "ou:all").await;
    check(&["ZADD", "od:m:ops", "5", "q1 asked"], "misplaced", "od:m:ops").await;
    check(&["RPUSH", "s:s1", "done"], "session", "done").await;
}

/// C51, CR-07: a run without its entry, also one that runs without a lease.
#[tokio::test]
async fn missing_entries_are_put_back() {
    for (place, run) in [
        ("due", "scheduled"),
        ("q:default|flow|", "queued"),
        ("lse", "running"),
        ("prk", "parked"),
        ("wak", "parked"),
        ("exp", "scheduled"),
        ("fin", "done"),
        ("dead", "failed"),
        ("ix", "queued"),
        ("t:a", "queued"),
        ("ou:all", "q1 parked"),
        ("ou:g:flow", "q1 parked"),
        ("oo:a:ann%20lee", "q1 asked"),
        ("od:a:ann%20lee", "q1 asked"),
        ("od:m:ops", "q1 asked"),
        ("oo:t:b", "q1 asked"),
        ("x:s1", "second"),
    ] {
        let about = run.rsplit(' ').next().unwrap();
        check(&["ZREM", place, run], "missing", about).await;
    }
    check(&["SREM", "h:w1", "running"], "missing", "running").await;
    check(&["LREM", "s:s1", "1", "second"], "missing", "second").await;
    check(&["DEL", "q:default|flow|"], "missing", "queued").await;
    check(&["ZREM", "sx", "s1"], "session", "s1").await;
}

/// Counts and sessions are corrected.
#[tokio::test]
async fn wrong_counts_are_counted_again() {
    check(&["HSET", "c", "default", "99"], "count", "default").await;
    check(&["DEL", "c"], "count", "default").await;
    let none = ["HSET", "c", "elsewhere", "0"];
    check_beside(&none, &["HSET", "c", "elsewhere", "1"], "count", "elsewhere").await;
    check(&["HSET", "S:s1", "open", "7"], "session", "s1").await;
    check(&["HSET", "S:s1", "last", "ghost"], "session", "ghost").await;
    check(&["SET", "n", "1"], "count", "order").await;
}

/// C50: a key that all runs share has the wrong type; it is renamed and filled again.
#[tokio::test]
async fn keys_of_the_wrong_type_are_filled_again() {
    for place in [
        "ix",
        "due",
        "wak",
        "lse",
        "prk",
        "ou:all",
        "oo:some",
        "od:some",
        "exp",
        "fin",
        "dead",
        "q:default|flow|",
    ] {
        check(&["SET", place, "rubbish"], "type", place).await;
    }
    check(&["SET", "c", "rubbish"], "type", "key c").await;
    check(&["DEL", "n", ";", "LPUSH", "n", "x"], "type", "key n").await;
}

/// A damaged run is set aside with its bytes; the others stay as they are. When its head is
/// whole again it is taken back.
#[tokio::test]
async fn damaged_runs_are_set_aside_and_taken_back() {
    for run in
        ["scheduled", "queued", "running", "parked", "asked", "done", "failed", "first", "second"]
    {
        let world = World::sound().await;
        let head = format!("r:{run}");
        let good: String = world.ask(redis::cmd("HGET").arg(world.key(&head)).arg("v"));
        let sound = dump(&world);
        world.run(&["HSET", &head, "v", "rubbish"]);
        let bytes = world.parts_of(run);
        let found = repair(&world).await;
        assert!(found.iter().any(|f| f.check == "unreadable" && f.about == run), "{found:?}");
        assert_eq!(world.parts_of(run), bytes, "nothing of it was changed");
        let findings = world.store.check().await.unwrap();
        assert!(findings.iter().all(|f| f.level != Level::Bad), "{run}: {findings:?}");
        assert!(findings.iter().any(|f| f.check == "aside" && f.text.contains(run)));
        for other in ["scheduled", "queued", "running", "parked", "done", "failed", "second"] {
            if other != run {
                let key = format!("r:{other}");
                assert_eq!(dump(&world).get(&key), sound.get(&key), "{other} beside {run}");
            }
        }
        let listed: Vec<String> =
            world.ask(redis::cmd("ZRANGE").arg(world.key("oo:g:flow")).arg(0).arg(-1));
        assert_eq!(listed.is_empty(), run == "asked", "its questions are on no list: {run}");
        world.run(&["HSET", &head, "v", &good]);
        let found = repair(&world).await;
        assert!(found.iter().any(|f| f.text.contains("can be read")), "{run}: {found:?}");
        let findings = world.store.check().await.unwrap();
        assert!(findings.iter().all(|f| f.level != Level::Bad && f.check != "aside"), "{run}");
    }
}

/// A run of which a part is missing is set aside; one that a worker has is left to it.
#[tokio::test]
async fn runs_without_their_parts_are_set_aside() {
    for (damage, run) in [
        (["DEL", "p:queued"], "queued"),
        (["RPOP", "j:parked"], "parked"),
        (["DEL", "j:done"], "done"),
    ] {
        let world = World::sound().await;
        world.run(&damage);
        let found = repair(&world).await;
        assert!(found.iter().any(|f| f.check == "parts" && f.about == run), "{found:?}");
        let findings = world.store.check().await.unwrap();
        assert!(findings.iter().all(|f| f.level != Level::Bad), "{findings:?}");
    }
    let world = World::sound().await;
    world.run(&["DEL", "p:running"]);
    let found = world.store.faults().await.unwrap();
    assert!(found.iter().any(|f| f.check == "parts" && !f.is_mendable()), "{found:?}");
    world.run(&["DEL", "r:queued"]);
    let found = repair(&world).await;
    assert!(found.iter().any(|f| f.text.contains("has no head")), "{found:?}");
    assert!(world.dump().contains_key("p:queued"), "what is left of it is kept");
}

/// A fault that has gone meanwhile is left alone, and so is one whose run has moved on.
#[tokio::test]
async fn a_repair_looks_again() {
    let world = World::sound().await;
    world.run(&["ZADD", "due", "5", "ghost"]);
    world.run(&["ZREM", "fin", "done"]);
    world.run(&["ZADD", "prk", "5", "queued"]);
    let faults = mendable(&world.store).await;
    assert_eq!(faults.len(), 3, "{faults:?}");
    world.run(&["ZREM", "due", "ghost"]);
    let claimed = world.store.claim(&claim("n9")).await.unwrap().runs;
    assert_eq!(claimed[0].head.run.as_str(), "queued");
    let mended = world.store.repair(&faults).await.unwrap();
    let of = |about: &str| mended[faults.iter().position(|f| f.about == about).unwrap()];
    assert_eq!((of("ghost"), of("done"), of("queued")), (false, true, false));
    let found = repair(&world).await;
    assert!(found.iter().all(|fault| fault.about == "queued"), "{found:?}");
}

/// Foreign keys under the prefix are no business of the doctor.
#[tokio::test]
async fn foreign_keys_are_ignored() {
    let world = World::sound().await;
    world.run(&["SET", "theirs", "x"]);
    world.run(&["SET", "r", "x"]);
    let findings = world.store.check().await.unwrap();
    assert!(findings.iter().all(|f| f.level != Level::Bad), "{findings:?}");
}
