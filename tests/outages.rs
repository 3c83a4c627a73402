//! Workers in bad times: what a real process does and says when its store is away, and how it
//! serves again without a restart.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![expect(clippy::print_stdout, reason = "the figures are of interest when a test is run alone")]

#[path = "outages/faults.rs"]
mod faults;
#[path = "outages/idle.rs"]
mod idle;
#[path = "outages/recovery.rs"]
mod recovery;
#[path = "outages/starts.rs"]
mod starts;
#[path = "outages/world.rs"]
mod world;
