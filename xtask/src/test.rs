//! `cargo xtask test`: all tests, from a fresh clone on a bare machine.

use std::process::{Command, ExitCode};

use anyhow::Result;

use crate::command::{self, cargo, status, works};
use crate::redis;

/// The tests of the planted bugs: they are no part of any other build.
const PLANTED: [&str; 10] = [
    "test",
    "--quiet",
    "--lib",
    "--package=holdpoint-storage-redis",
    "--package=holdpoint-storage-sqlite",
    "--package=holdpoint-worker",
    "--features=holdpoint-storage-redis/planted",
    "--features=holdpoint-storage-sqlite/planted",
    "--features=holdpoint-worker/planted",
    "planted",
];

/// Prepares the machine, builds what tests start, and runs doc tests and then all others.
///
/// The runner's own summary comes last, so nothing is said after it; `args` go to the runner.
/// Failing doc tests do not keep the others from running, but they count.
pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    redis::ensure_installed()?;
    // Tests start examples and the binaries of other packages, and preload a library; cargo builds
    // these only when asked.
    command::run(&mut cargo(&["build", "--workspace", "--lib", "--examples", "--bins"]))?;
    let docs = status(&mut cargo(&["test", "--doc", "--workspace"]))?;
    if !docs.success() {
        eprintln!("xtask: doc tests failed, see above");
    }
    // What the planted bugs replace must still be there, in builds that have them.
    let planted = status(&mut cargo(&PLANTED))?;
    if !planted.success() {
        eprintln!("xtask: the planted bugs lost their places, see above");
    }
    let others = status(runner().args(args))?;
    let is_good = docs.success() && planted.success() && others.success();
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The test runner: nextest if it is there, else cargo's own.
fn runner() -> Command {
    if works(&mut cargo(&["nextest", "--version"])) {
        cargo(&["nextest", "run", "--workspace"])
    } else {
        cargo(&["test", "--workspace", "--lib", "--bins", "--tests", "--no-fail-fast"])
    }
}
