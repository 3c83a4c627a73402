//! The command line from outside: real processes on real stores, told apart by nothing but what
//! they print, how they end, and what the ledger says their nodes did.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[path = "cli/commands.rs"]
mod commands;
#[path = "cli/crashes.rs"]
mod crashes;
#[path = "cli/doctor.rs"]
mod doctor;
#[path = "cli/examples.rs"]
mod examples;
#[path = "cli/gates.rs"]
mod gates;
#[path = "cli/graphs.rs"]
mod graphs;
#[path = "cli/inbox.rs"]
mod inbox;
#[path = "cli/output.rs"]
mod output;
#[path = "cli/world.rs"]
mod world;
