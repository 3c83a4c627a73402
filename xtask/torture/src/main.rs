//! Tortures Holdpoint; run as `cargo xtask torture`.
//!
//! One program in several parts, so that all of them are real processes: the harness, which
//! starts the others, kills, pauses and cuts them by a plan made of a seed; the workers, which are
//! `holdpoint worker` with the graphs of this program; and the load, which enqueues, answers and
//! cancels. Everybody writes down what it did; the checkers of `holdpoint-torture-check` compare
//! that with what the store holds in the end.
#![expect(clippy::print_stdout, reason = "a measuring program prints what it measured")]

mod chance;
mod effects;
mod faults;
mod graphs;
mod load;
mod logs;
mod options;
mod places;
mod plan;
mod planted;
mod recorder;
mod rig;
mod scenario;
mod slots;

use std::process::ExitCode;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let ended = match args.first().map(String::as_str) {
        Some("worker") => {
            recorder::started();
            return graphs::app().main();
        }
        Some("load") => load::main(args.get(1..).unwrap_or_default()),
        Some(_) | None => scenario::main(&args),
    };
    ended.unwrap_or_else(|error| {
        eprintln!("torture: {error:#}");
        ExitCode::FAILURE
    })
}
