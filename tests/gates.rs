//! Gates under fire: workers that are killed, answers from everywhere at once, restarts in between.
//!
//! The workers are processes: this very test binary, started again, see `worker`.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "the figures are of interest when a test is run alone")]

#[path = "gates/crashes.rs"]
mod crashes;
#[path = "gates/graphs.rs"]
mod graphs;
#[path = "gates/parked.rs"]
mod parked;
#[path = "gates/prefix.rs"]
mod prefix;
#[path = "gates/storm.rs"]
mod storm;
#[path = "gates/worker.rs"]
mod worker;
#[path = "gates/world.rs"]
mod world;
