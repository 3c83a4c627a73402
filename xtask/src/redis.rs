//! Makes sure that there is a Redis for the tests to start.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use anyhow::{Result, bail, ensure};

use crate::command::{program, run, works};

/// Finds `redis-server` and `redis-cli`, or installs them where that needs no question.
///
/// Only as root on a Debian system: elsewhere the machine is somebody's own.
pub(crate) fn ensure_installed() -> Result<()> {
    if is_installed() {
        return Ok(());
    }
    if !may_install() {
        bail!(
            "the tests start their own Redis, and there is no redis-server or redis-cli on PATH; \
             install version 7.0 or newer: `apt-get install redis-server` on Debian and Ubuntu, \
             `brew install redis` on macOS, `dnf install redis` on Fedora"
        );
    }
    eprintln!("xtask: no redis-server on PATH; installing Debian's package for the tests");
    run(&mut program("apt-get", &["update"]))?;
    let install = ["install", "-y", "--no-install-recommends", "redis-server"];
    run(program("apt-get", &install).env("DEBIAN_FRONTEND", "noninteractive"))?;
    ensure!(is_installed(), "the package is installed, and still redis-server does not run");
    Ok(())
}

fn is_installed() -> bool {
    ["redis-server", "redis-cli"].iter().all(|name| works(&mut program(name, &["--version"])))
}

fn may_install() -> bool {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    is_root
        && Path::new("/etc/debian_version").exists()
        && works(&mut program("apt-get", &["--version"]))
}
