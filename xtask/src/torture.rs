//! `cargo xtask torture`: builds the torture and its shim, and runs it. `--planted` builds it with
//! the bugs that it must find.

use std::process::ExitCode;

use anyhow::Result;

use crate::{command, redis};

/// Assertions stay on, and processes start fast.
const PROFILE: &str = "--profile=torture";

/// Runs the torture with `args`.
pub(crate) fn run(args: &[String]) -> Result<ExitCode> {
    redis::ensure_installed()?;
    let mut package = vec!["--package", "holdpoint-torture"];
    // Not linked, so not built with the program that preloads it.
    let build = ["build", "--quiet", PROFILE, "--package", "holdpoint-torture-shim"];
    command::run(&mut command::cargo(&[&build[..], &package].concat()))?;
    if args.iter().any(|arg| arg == "--planted" || arg == "--bug") {
        package.extend(["--features", "planted"]);
    }
    let mut all = [&["run", "--quiet", PROFILE][..], &package, &["--"]].concat();
    all.extend(args.iter().map(String::as_str));
    let status = command::status(&mut command::cargo(&all))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
