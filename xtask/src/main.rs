//! The tasks of this repository, run as `cargo xtask TASK`.
//!
//! They need nothing installed but Rust, so that a fresh clone and the build server do the same.
//! A task is a module with a `run` function and a line in [`main`] and in [`USAGE`].

use std::process::ExitCode;

use anyhow::Result;

mod bench;
mod ci;
mod command;
mod redis;
mod test;
mod tidy;
mod torture;

const USAGE: &str = "\
usage: cargo xtask TASK

  bench w      measures the work W on each store, in release mode; more with `bench`
  bench hitl   measures how soon a run goes on after an answer
  torture      kills, pauses and cuts everything under load, and checks what is left; see --help;
               with --planted shows that it finds twelve bugs
  test [ARGS]  builds everything and runs all tests; ARGS go to the test runner
  ci           what the build server checks: format, tidy, clippy, docs, tests
  tidy         checks the rules of the tree that no compiler knows";

fn main() -> ExitCode {
    let mut args = std::env::args().skip(1);
    let task = args.next();
    let rest: Vec<String> = args.collect();
    let outcome = match task.as_deref() {
        Some("bench") => bench::run(&rest),
        Some("torture") => torture::run(&rest),
        Some("test") => test::run(&rest),
        Some("ci") => ci::run(),
        Some("tidy") => done(tidy::run()),
        Some(_) | None => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("xtask: {error:#}");
        ExitCode::FAILURE
    })
}

fn done(outcome: Result<()>) -> Result<ExitCode> {
    outcome.map(|()| ExitCode::SUCCESS)
}
