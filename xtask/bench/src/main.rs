//! Measures Holdpoint: `cargo xtask bench w` on the work W, `cargo xtask bench hitl` from an
//! acknowledged answer to the next node, `cargo xtask bench parked` lists over many parked runs.
//!
//! W is a line of three nodes that each append about 100 bytes to a list; every node is committed
//! before the next one starts. Producer, worker and store share the machine; figures of one
//! invocation are to be compared with each other, not with those of another machine.
#![expect(clippy::print_stdout, reason = "a measuring program prints what it measured")]

mod hitl;
mod parked;
mod probe;
mod stores;
mod w;

use anyhow::{Result, bail};

use crate::stores::StoreKind;

const USAGE: &str = "\
usage: cargo xtask bench w [--runs N] [--concurrency N] [--connections N] [--store NAME]... [--json]
       cargo xtask bench hitl [--samples N] [--store NAME]... [--json]
       cargo xtask bench parked [--runs N] [--calls N] [--program FILE] [--store NAME]... [--json]
       stores: sqlite-full redis-everysec redis-always (all without the option)
       FILE: a holdpoint program, to be measured as a process too";

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let work = args.next().unwrap_or_default();
    let settings = settings(&work, args)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    for kind in &settings.w.stores {
        let (json, text) = match work.as_str() {
            "w" => {
                let figures = runtime.block_on(w::measure(*kind, &settings.w))?;
                (figures.to_json(), figures.to_text())
            }
            "hitl" => {
                let figures = runtime.block_on(hitl::measure(*kind, settings.w.samples))?;
                (figures.to_json(), figures.to_text())
            }
            "parked" => {
                let figures = runtime.block_on(parked::measure(*kind, &settings.parked))?;
                (figures.to_json(), figures.to_text())
            }
            _ => bail!("{USAGE}"),
        };
        println!("{}", if settings.is_json { json } else { text });
    }
    Ok(())
}

#[derive(Default)]
struct Settings {
    w: w::Settings,
    parked: parked::Settings,
    is_json: bool,
}

fn settings(work: &str, mut args: impl Iterator<Item = String>) -> Result<Settings> {
    let mut settings = Settings::default();
    while let Some(arg) = args.next() {
        let mut value =
            || args.next().ok_or_else(|| anyhow::anyhow!("{arg} needs a value\n{USAGE}"));
        match (work, arg.as_str()) {
            ("w", "--runs") => settings.w.runs = value()?.parse()?,
            ("w", "--concurrency") => settings.w.concurrency = value()?.parse()?,
            ("w", "--connections") => settings.w.connections = value()?.parse()?,
            ("hitl", "--samples") => settings.w.samples = value()?.parse()?,
            ("parked", "--runs") => settings.parked.runs = value()?.parse()?,
            ("parked", "--calls") => settings.parked.calls = value()?.parse()?,
            ("parked", "--program") => settings.parked.program = Some(value()?),
            (_, "--store") => {
                let name = value()?;
                let kind = StoreKind::ALL.into_iter().find(|kind| kind.name() == name);
                let Some(kind) = kind else { bail!("no store {name:?}\n{USAGE}") };
                settings.w.stores.push(kind);
            }
            (_, "--json") => settings.is_json = true,
            (_, other) => bail!("no option {other:?}\n{USAGE}"),
        }
    }
    if settings.w.stores.is_empty() {
        settings.w.stores = StoreKind::ALL.to_vec();
    }
    Ok(settings)
}
