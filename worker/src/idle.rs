//! Whether there is anything left to do, for a worker that is to end when there is not.

use std::{sync::Arc, time::Duration};

use holdpoint_graph::RunStatus;
use holdpoint_storage::{Lane, Stats, Store};
use tokio::time::sleep;

use crate::{claim::Quiet, leases::Leases};

/// A timer that is due within this time is something to do.
const SOON_MS: i64 = 1_000;
/// The pause between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// Returns when nothing is queued in the lanes, running, or due soon. Cancel-safe.
pub(crate) async fn wait(store: &Arc<dyn Store>, lanes: &[Lane], leases: &Leases, quiet: &Quiet) {
    loop {
        leases.emptied().await;
        // An error is the claim loop's to tell of; a store that is away is not idle.
        if let Ok(stats) = store.stats().await
            && is_idle(&stats, lanes)
        {
            // Counted first, claimed then: what was queued in between was brought by the claim.
            let empty = quiet.look().await;
            if leases.is_empty() && empty.next_due_in_ms.is_none_or(|due| due > SOON_MS) {
                return;
            }
        }
        sleep(PAUSE).await;
    }
}

fn is_idle(stats: &Stats, lanes: &[Lane]) -> bool {
    let is_running =
        stats.counts.iter().any(|(status, count)| *status == RunStatus::Running && *count > 0);
    let is_queued = stats.lanes.iter().any(|waiting| {
        waiting.queued > 0
            && lanes.contains(&waiting.lane)
            && !stats.paused.contains(&waiting.lane.queue)
    });
    !is_running && !is_queued
}

#[cfg(test)]
mod tests {
    use holdpoint_graph::{GraphId, QueueId};
    use holdpoint_storage::LaneStats;

    use super::*;

    fn lane(queue: &str, graph: &str) -> Lane {
        Lane {
            queue: QueueId::new(queue).unwrap(),
            graph: GraphId::new(graph).unwrap(),
            fingerprint: None,
        }
    }

    fn check(change: impl FnOnce(&mut Stats), expect: bool) {
        let mut stats = Stats {
            now_ms: 0,
            counts: RunStatus::ALL.map(|status| (status, 0)).to_vec(),
            lanes: Vec::new(),
            open_questions: 0,
            paused: Vec::new(),
        };
        change(&mut stats);
        assert_eq!(is_idle(&stats, &[lane("q", "mine")]), expect, "{stats:?}");
    }

    fn queued(lane: Lane) -> LaneStats {
        LaneStats { lane, queued: 1, oldest_created_ms: Some(0) }
    }

    #[test]
    fn only_what_this_worker_could_do_keeps_it() {
        check(|_| {}, true);
        check(|stats| stats.counts = vec![(RunStatus::Running, 1)], false);
        check(|stats| stats.counts = vec![(RunStatus::Parked, 1)], true);
        check(|stats| stats.lanes = vec![queued(lane("q", "mine"))], false);
        check(|stats| stats.lanes = vec![queued(lane("q", "theirs"))], true);
        check(|stats| stats.lanes = vec![queued(lane("other", "mine"))], true);
        let paused = |stats: &mut Stats| {
            stats.lanes = vec![queued(lane("q", "mine"))];
            stats.paused = vec![QueueId::new("q").unwrap()];
        };
        check(paused, true);
    }
}
