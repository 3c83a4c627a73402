//! Random sequences of operations, run on the reference model and on a backend: every reply and
//! everything stored must be the same.
//!
//! Time plays no part: leases are an hour, delays none or an hour, and workers are lost by word
//! and not by waiting. `HOLDPOINT_CASES` is the number of sequences; a failure prints the seed for
//! `HOLDPOINT_SEED`, which runs the same ones again, and the smallest sequence that fails.

use std::sync::atomic::{AtomicU64, Ordering};

use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use tokio::{runtime::Handle, task::block_in_place};

use super::{Bench, world::World};
use crate::Random;
use op::Op;
use side::Sides;

mod commands;
mod op;
mod side;

/// Every reply and every stored state is the model's, for random sequences of operations.
///
/// # Panics
/// When the backend and the model disagree.
pub async fn model_agrees(bench: &dyn Bench) {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let cases = number("HOLDPOINT_CASES").unwrap_or(64);
    let seed = number("HOLDPOINT_SEED").unwrap_or_else(|| u64::from_le_bytes(Random.bytes()));
    let config = Config {
        cases: u32::try_from(cases).unwrap_or(u32::MAX),
        failure_persistence: None,
        max_shrink_time: 20_000,
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let rng = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let case = AtomicU64::new(0);
    let verdict = runner.run(&op::sequences(), |ops| {
        let name = format!("case-{}", case.fetch_add(1, Ordering::Relaxed));
        block_in_place(|| Handle::current().block_on(run(bench, &name, &ops)))
    });
    if let Err(fault) = verdict {
        panic!("HOLDPOINT_SEED={seed}: {fault}");
    }
}

/// Runs one sequence on both sides.
async fn run(bench: &dyn Bench, name: &str, ops: &[Op]) -> Result<(), TestCaseError> {
    let mut sides = Sides::new(World::named(bench, name).await, name);
    for (number, op) in ops.iter().enumerate() {
        let at = |fault| TestCaseError::fail(format!("operation {number}, {op:?}: {fault}"));
        sides.run(op).await.map_err(at)?;
        sides.compare().await.map_err(at)?;
    }
    sides.compare_details().await.map_err(TestCaseError::fail)
}
