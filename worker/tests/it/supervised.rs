//! The supervisor with a shell as its child: it needs no worker to die.

use std::{path::PathBuf, sync::Arc, time::Duration};

use holdpoint_graph::{RunStatus, WorkerId};
use holdpoint_storage::{ClaimRequest, Random};
use holdpoint_testkit::{Scratch, until_async};
use holdpoint_worker::{SupervisorConfig, supervise};

use crate::world::{LONG, World, config, new_run, on_all};

/// A shell that says who it is in a file of its own, in `folder`, and goes on with `then`.
fn shell(folder: &Scratch, then: &str) -> SupervisorConfig {
    let folder = folder.path().display();
    let script = format!(
        "echo \"$HOLDPOINT_WORKER_ID $HOLDPOINT_CHILD\" >{folder}/$$.new; \
         mv {folder}/$$.new {folder}/$$.born; births=$(ls {folder}/*.born | wc -l); {then}"
    );
    let args = vec!["-c".into(), script.into()];
    SupervisorConfig::new("/bin/sh", args, &config(10_000, 1))
}

/// The children so far: process and worker id.
fn born(folder: &Scratch) -> Vec<(i32, WorkerId)> {
    let files = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path());
    let born = files.filter(|path: &PathBuf| path.extension().is_some_and(|e| e == "born"));
    let read = |path: PathBuf| {
        let said = std::fs::read_to_string(&path).unwrap();
        let (id, supervisor) = said.trim().split_once(' ').unwrap();
        assert_eq!(supervisor, std::process::id().to_string());
        let pid = path.file_stem().unwrap().to_str().unwrap().parse().unwrap();
        (pid, WorkerId::new(id).unwrap())
    };
    born.map(read).collect()
}

async fn claim_as(world: &World, worker: &WorkerId) {
    let request = ClaimRequest {
        worker: worker.clone(),
        nonce: Random.nonce(),
        lanes: vec![new_run("work", "run").lane()],
        max: 1,
        lease_ms: 60_000,
        oldest_first: false,
        bytes_max: 1 << 20,
    };
    assert_eq!(world.store.claim(&request).await.unwrap().runs.len(), 1);
}

/// A dead process costs well under a second, not a lease; its journal will say how it died.
#[tokio::test]
async fn the_leases_of_a_dead_child_are_handed_back_at_once() {
    on_all(async |world| {
        let scratch = Scratch::new();
        let config = shell(&scratch, "[ $births -gt 1 ] && exit 0; read forever");
        let supervisor = tokio::spawn(supervise(config, Arc::clone(&world.store)));
        let (pid, worker) =
            until_async("the child", LONG, async || born(&scratch).into_iter().next()).await;
        let run = world.enqueue("work", "run").await;
        claim_as(world, &worker).await;
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        let head = world.until(&run, RunStatus::Queued).await;
        assert_eq!(head.losses.len(), 1);
        assert_eq!((&head.losses[0].worker, &*head.losses[0].evidence), (&worker, "signal 9"));
        assert_eq!(supervisor.await.unwrap().unwrap(), 0, "the second child ended in order");
        let ids: Vec<WorkerId> = born(&scratch).into_iter().map(|(_, id)| id).collect();
        assert_eq!(ids.len(), 2);
        assert_ne!(ids[0], ids[1], "every process has an id of its own");
    })
    .await;
}

#[tokio::test]
async fn a_child_that_fails_is_replaced_and_one_that_refuses_is_not() {
    let world = World::sqlite().await;
    for (then, births, end) in [
        ("[ $births -gt 3 ] && exit 0; exit 101", 4, 0),
        ("exit 2", 1, 2),
        ("[ $births -gt 1 ] && exit 3; kill -ABRT $$", 2, 3),
    ] {
        let scratch = Scratch::new();
        let supervisor = supervise(shell(&scratch, then), Arc::clone(&world.store));
        let ended = tokio::time::timeout(LONG, supervisor).await.unwrap().unwrap();
        assert_eq!((born(&scratch).len(), ended), (births, end), "{then}");
    }
}

/// The child's input ends with the supervisor, however that went.
#[tokio::test]
async fn a_child_sees_the_end_of_its_supervisor() {
    let world = World::sqlite().await;
    let scratch = Scratch::new();
    let mut config = shell(&scratch, "read forever; touch $0");
    config.args.push(scratch.file("orphaned").into());
    config.drain = Duration::from_secs(1);
    let script = config.args[1].clone();
    // Its own session would end with `kill_on_drop`; a grandchild keeps the input's other end.
    config.args[1] = {
        // A shell gives `/dev/null` to what it runs in the background, hence the third file.
        let mut wrapped = std::ffi::OsString::from("exec 3<&0; (");
        wrapped.push(script);
        wrapped.push(") <&3 3<&- & wait");
        wrapped
    };
    let supervisor = tokio::spawn(supervise(config, Arc::clone(&world.store)));
    until_async("the child", LONG, async || born(&scratch).into_iter().next()).await;
    assert!(!scratch.file("orphaned").exists(), "it waits while the supervisor lives");
    supervisor.abort();
    until_async("the end to be seen", LONG, async || {
        scratch.file("orphaned").exists().then_some(())
    })
    .await;
}
