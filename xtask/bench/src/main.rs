//! Measures Holdpoint: `cargo xtask bench w` on the work W, `cargo xtask bench hitl` from an
//! acknowledged answer to the next node.
//!
//! W is a line of three nodes that each append about 100 bytes to a list; every node is committed
//! before the next one starts. Producer, worker and store share the machine; figures of one
//! invocation are to be compared with each other, not with those of another machine.
#![expect(clippy::print_stdout, reason = "a measuring program prints what it measured")]

mod hitl;
mod probe;
mod stores;
mod w;

use anyhow::{Result, bail};

use crate::{stores::StoreKind, w::Settings};

const USAGE: &str = "\
usage: cargo xtask bench w [--runs N] [--concurrency N] [--connections N] [--store NAME]... [--json]
       cargo xtask bench hitl [--samples N] [--store NAME]... [--json]
       stores: sqlite-full redis-everysec redis-always (all three without the option)";

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let work = args.next();
    let (settings, is_json) = settings(args)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    for kind in &settings.stores {
        let (json, text) = match work.as_deref() {
            Some("w") => {
                let figures = runtime.block_on(w::measure(*kind, &settings))?;
                (figures.to_json(), figures.to_text())
            }
            Some("hitl") => {
                let figures = runtime.block_on(hitl::measure(*kind, settings.samples))?;
                (figures.to_json(), figures.to_text())
            }
            Some(_) | None => bail!("{USAGE}"),
        };
        println!("{}", if is_json { json } else { text });
    }
    Ok(())
}

fn settings(mut args: impl Iterator<Item = String>) -> Result<(Settings, bool)> {
    let mut settings = Settings::default();
    let mut is_json = false;
    while let Some(arg) = args.next() {
        let mut value =
            || args.next().ok_or_else(|| anyhow::anyhow!("{arg} needs a value\n{USAGE}"));
        match arg.as_str() {
            "--samples" => settings.samples = value()?.parse()?,
            "--runs" => settings.runs = value()?.parse()?,
            "--concurrency" => settings.concurrency = value()?.parse()?,
            "--connections" => settings.connections = value()?.parse()?,
            "--store" => {
                let name = value()?;
                let kind = StoreKind::ALL.into_iter().find(|kind| kind.name() == name);
                let Some(kind) = kind else { bail!("no store {name:?}\n{USAGE}") };
                settings.stores.push(kind);
            }
            "--json" => is_json = true,
            other => bail!("no option {other:?}\n{USAGE}"),
        }
    }
    if settings.stores.is_empty() {
        settings.stores = StoreKind::ALL.to_vec();
    }
    Ok((settings, is_json))
}
