//! `cargo xtask ci`: what must hold before a change is merged, cheapest check first.

use std::process::ExitCode;

use anyhow::Result;

use crate::command::{self, cargo};
use crate::{test, tidy};

/// Runs all checks and stops at the first that fails.
pub(crate) fn run() -> Result<ExitCode> {
    command::run(&mut cargo(&["fmt", "--all", "--check"]))?;
    tidy::run()?;
    let deny = ["--", "-D", "warnings"];
    command::run(cargo(&["clippy", "--workspace", "--all-targets"]).args(deny))?;
    let doc = ["doc", "--workspace", "--no-deps"];
    command::run(cargo(&doc).env("RUSTDOCFLAGS", "-D warnings"))?;
    test::run(&[])
}
