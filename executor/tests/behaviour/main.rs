//! What a run does over a store: crashes, gates, retries, cancels, each on every backend.
#![expect(clippy::unwrap_used, reason = "a test that cannot set itself up has failed")]

mod asks;
mod bench;
mod budgets;
mod crashes;
mod crowds;
mod deadlines;
mod effects;
mod failures;
mod faults;
mod gates;
mod nodes;
mod races;
mod resume;
mod retries;
mod runner;
mod sessions;
mod shapes;
mod signals;
mod sleeps;
mod values;
mod versions;
mod votes;
mod width;
