//! `cargo xtask bench`: builds the measuring program in release mode and runs it.

use std::process::ExitCode;

use anyhow::Result;

use crate::command;

/// Runs the measuring program with `args`.
pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    let mut all = vec!["run", "--release", "--quiet", "--package", "holdpoint-bench", "--"];
    all.extend(args.iter().map(String::as_str));
    let status = command::status(&mut command::cargo(&all))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
