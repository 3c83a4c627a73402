//! A worker that claims a run, is deaf for longer than its lease, and then goes on as if it had
//! noticed nothing. The store must refuse all it writes; a real worker hardly ever tries.

use std::time::Duration;

use anyhow::{Context as _, Result};
use holdpoint_graph::{Event, GraphId, QueueId, WorkerId};
use holdpoint_producer::RunRequest;
use holdpoint_storage::{
    Chain, ClaimRequest, ClaimedRun, CommitReply, CommitRequest, Disposition, Lane, Random,
    Renewal, Store, StoreError,
};
use holdpoint_torture_check::{Line, Op, Phase};

use super::{Desk, calls::Came};
use crate::graphs::{GRACE, LEASE};

/// The pause between two runs.
const REST: Duration = Duration::from_millis(300);
/// When a run that only it knows ends.
const ENDS_AFTER: Duration = Duration::from_secs(5);
/// How much longer than lease and grace it is deaf.
const DEAF: Duration = Duration::from_millis(700);
/// The codes of a stale write that was refused, and of one that was taken.
const REFUSED: &str = "E_FENCED";
const TAKEN: &str = "stale_taken";
/// How often a write is tried until the store answers.
const TRIES_MAX: usize = 20;

/// Claims, sleeps and writes until it is dropped.
pub(super) async fn haunt(desk: Desk) -> Result<()> {
    for number in 0_u64.. {
        tokio::time::sleep(REST).await;
        let worker = |what: &str| WorkerId::new(format!("z{}-{number}{what}", desk.name));
        // A store that is away has nothing to claim; the next one may be lucky.
        let is_own = number % 2 == 0 && bring(&desk, number).await == Came::Ok;
        let queue = if is_own { desk.name.as_str() } else { "default" };
        let Ok(Some(claimed)) = claim(&desk, &worker("")?, queue).await else { continue };
        tokio::time::sleep(LEASE + GRACE + DEAF).await;
        if is_own {
            // Its heir has written nothing when the stale write comes: the journal is the same.
            let _ = claim(&desk, &worker("-heir")?, queue).await;
        }
        if let Err(error) = write_stale(&desk, &claimed).await {
            eprintln!("a stale owner had no answer: {error:#}");
        }
    }
    Ok(())
}

/// A run in a queue that no worker serves. Its deadline ends it, whatever its queue.
async fn bring(desk: &Desk, number: u64) -> Came {
    let run = format!("{}-{number:05}", desk.name);
    let request = RunRequest::new("line").run(&run).request(format!("{run}-q"));
    desk.enqueue(&run, &request.queue(&desk.name).deadline_in(ENDS_AFTER)).await
}

async fn claim(desk: &Desk, worker: &WorkerId, queue: &str) -> Result<Option<ClaimedRun>> {
    let lane =
        Lane { queue: QueueId::new(queue)?, graph: GraphId::new("line")?, fingerprint: None };
    let request = ClaimRequest {
        worker: worker.clone(),
        nonce: Random.nonce(),
        lanes: vec![lane],
        max: 1,
        lease_ms: i64::try_from(LEASE.as_millis())?,
        oldest_first: false,
        bytes_max: 1 << 20,
    };
    Ok(desk.producer.store().claim(&request).await?.runs.pop())
}

/// Renews, commits and releases under a lease that is over.
async fn write_stale(desk: &Desk, claimed: &ClaimedRun) -> Result<()> {
    let (store, lease) = (desk.producer.store().as_ref(), &claimed.lease);
    let lease_ms = i64::try_from(LEASE.as_millis())?;
    let leases = [lease.clone()];
    let head = insist(|| store.head(&lease.run)).await?;
    let is_stale = head.is_some_and(|head| head.epoch > lease.pair.epoch);
    let renewals = insist(|| store.renew(&leases, lease_ms)).await?;
    if renewals != [Renewal::Fenced] {
        if is_stale {
            return told(desk, claimed, "renew", TAKEN);
        }
        // Nobody has taken it away yet, as after a stall of the store: then it is no stale lease.
        insist(|| store.release(lease)).await?;
        return Ok(());
    }
    told(desk, claimed, "renew", REFUSED)?;
    let request = commit(store, claimed, lease_ms)?;
    match insist(|| store.commit(&request)).await? {
        CommitReply::Fenced => told(desk, claimed, "commit", REFUSED)?,
        CommitReply::Done { .. } => told(desk, claimed, "commit", TAKEN)?,
        // Not taken, for another reason.
        CommitReply::Sequence { .. } | CommitReply::Cancelled => {}
    }
    let was_released = insist(|| store.release(lease)).await?;
    told(desk, claimed, "release", if was_released { TAKEN } else { REFUSED })
}

/// An event that the run would have for good, were it taken.
fn commit(store: &dyn Store, claimed: &ClaimedRun, lease_ms: i64) -> Result<CommitRequest> {
    let (head, lease) = (&claimed.head, &claimed.lease);
    let mut chain = Chain::at(store.namespace(), &head.run, head.seq, &head.hash)?;
    let event = Event::Claimed {
        worker: lease.worker.clone(),
        epoch: lease.pair.epoch,
        at_ms: head.updated_at_ms,
    };
    let record = chain.encode(head.updated_at_ms, lease.pair.epoch, &event);
    Ok(CommitRequest {
        lease: lease.clone(),
        request: Random.request_id(),
        from: head.seq,
        previous: head.hash.clone(),
        records: vec![record],
        hash: chain.hash(),
        snapshot: None,
        consumed: Vec::new(),
        opened: Vec::new(),
        closed: Vec::new(),
        is_progress: false,
        pin: None,
        lease_ms,
        disposition: Disposition::Continue,
    })
}

fn told(desk: &Desk, claimed: &ClaimedRun, call: &str, code: &str) -> Result<()> {
    let epoch = i64::try_from(claimed.lease.pair.epoch)?;
    let line = Line::now(Op::Worker, Phase::Ok, call)
        .run(claimed.head.run.as_str())
        .pair(epoch, claimed.lease.pair.nonce.as_str())
        .code(code);
    desk.recorder.write(line).context("the history cannot be written")
}

/// Calls until the store answers.
async fn insist<T, F>(call: impl Fn() -> F) -> Result<T>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut tries = 0;
    loop {
        tries += 1;
        match call().await {
            Ok(reply) => return Ok(reply),
            Err(error) if tries == TRIES_MAX => return Err(error.into()),
            Err(_) => tokio::time::sleep(LEASE / 10).await,
        }
    }
}
