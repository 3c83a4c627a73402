//! The crash matrix: at each of 28 points a process dies, stands still or meets an error, on each
//! store; a clean one goes on; and at the end nothing is lost, doubled or damaged.
//!
//! Beside it: the files of both stores cut at any byte, and a server killed under load.
//!
//! ```text
//! cargo test --test crash_matrix                                all cases
//! cargo test --test crash_matrix -- redis/commit.after/abort    one of them, or all that match
//! ```
//! A program of its own and not the usual test harness, since it is also the program under test:
//! it starts itself again in the role of a worker, a producer or an operator.

mod case;
mod checks;
mod cut;
mod graph;
mod outage;
mod program;
mod runner;
mod stage;
mod table;

use std::process::ExitCode;

fn main() -> ExitCode {
    program::main().unwrap_or_else(runner::main)
}
