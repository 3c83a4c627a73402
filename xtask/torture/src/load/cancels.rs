//! Cancels a run at a random instant, some of them twice.

use std::time::Duration;

use holdpoint_graph::RunId;

use super::{Desk, calls::Came};
use crate::chance::Chance;

/// How long after its enqueueing a run is cancelled, at most.
const LATER_MS_MAX: u64 = 120;

/// Cancels the run in a while.
pub(super) async fn later(desk: &Desk, run: &RunId, chance: &mut Chance) {
    tokio::time::sleep(Duration::from_millis(chance.below(LATER_MS_MAX))).await;
    for number in 0..2 {
        let came = desk.cancel(&format!("{run}-cancel{number}"), run).await;
        if came == Came::Ok && chance.percent(70) {
            return;
        }
    }
}
