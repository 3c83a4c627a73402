//! `doctor --repair`: says what it will do, keeps what it will change, and does it.

use std::{
    fs::{File, OpenOptions},
    io::Write,
    path::{Path, PathBuf},
};

use holdpoint_storage::{Clock, Damage, Level, Store, SystemClock};
use serde::Serialize;

use crate::{
    args::doctor::Doctor,
    context::Context,
    failure::{Failure, Stop},
    place::Access,
};

/// Looks that one repair takes: some damage hides more, but never so deep.
const LOOKS_MAX: usize = 10;

/// A line of what was planned or done.
#[derive(Serialize)]
struct Line<'a> {
    step: &'a str,
    check: &'a str,
    about: &'a str,
    text: &'a str,
    action: &'a str,
}

/// Mends what contradicts itself; ends with 3 when something bad is left.
pub(crate) async fn run(context: &Context, args: &Doctor) -> Result<(), Stop> {
    let producer = context.producer(Access::Existing).await?;
    let store = producer.store();
    let mut faults = mendable(store.as_ref()).await?;
    faults.iter().try_for_each(|fault| show(context, "plan", fault))?;
    if args.dry_run {
        return if faults.is_empty() {
            ended(context, store.as_ref()).await
        } else {
            Err(Stop::Exit(3))
        };
    }
    let mut backup: Option<Backup> = None;
    for _ in 0..LOOKS_MAX {
        if faults.is_empty() {
            break;
        }
        if backup.is_none() {
            backup = Some(Backup::create(context, args)?);
        }
        if let Some(backup) = &mut backup {
            backup.keep(&faults)?;
        }
        let mended = store.repair(&faults).await?;
        for (fault, is_mended) in faults.iter().zip(&mended) {
            show(context, if *is_mended { "repaired" } else { "changed meanwhile" }, fault)?;
        }
        faults = mendable(store.as_ref()).await?;
    }
    ended(context, store.as_ref()).await
}

async fn mendable(store: &dyn Store) -> Result<Vec<Damage>, Stop> {
    let faults = store.faults().await?;
    Ok(faults.into_iter().filter(Damage::is_mendable).collect())
}

/// What is left is told as `doctor` tells it.
async fn ended(context: &Context, store: &dyn Store) -> Result<(), Stop> {
    let findings = store.check().await?;
    let left = findings.iter().filter(|finding| finding.level != Level::Ok);
    for finding in left {
        context.out.show(finding, || super::doctor::line(context, finding))?;
    }
    if findings.iter().any(|finding| finding.level == Level::Bad) {
        return Err(Stop::Exit(3));
    }
    Ok(())
}

fn show(context: &Context, step: &str, fault: &Damage) -> Result<(), Stop> {
    let Damage { check, about, text, action, .. } = fault;
    context.out.show(&Line { step, check, about, text, action }, || {
        let [text, action] = [text, action].map(|text| holdpoint_graph::printable(text, 500));
        format!("{step}: {text}: {action}")
    })
}

/// The file that keeps what is changed: one fault a line, with all values before and after.
struct Backup {
    path: PathBuf,
    file: File,
}

impl Backup {
    fn create(context: &Context, args: &Doctor) -> Result<Self, Stop> {
        let name = || PathBuf::from(format!("holdpoint-repair-{}.jsonl", SystemClock.wall_ms()));
        let path = args.backup.clone().unwrap_or_else(name);
        // An older backup is never written over.
        let file = OpenOptions::new().write(true).create_new(true).open(&path);
        let file = file.map_err(|fault| failed(&path, &fault))?;
        let said = serde_json::json!({ "step": "backup", "file": path });
        context.out.show(&said, || format!("backup: {}", path.display()))?;
        Ok(Self { path, file })
    }

    /// Keeps faults; they are on the disk when it returns.
    fn keep(&mut self, faults: &[Damage]) -> Result<(), Stop> {
        let mut text = Vec::new();
        for fault in faults {
            text.extend(serde_json::to_vec(fault).expect("a fault always has a text"));
            text.push(b'\n');
        }
        let kept = self.file.write_all(&text).and_then(|()| self.file.sync_all());
        kept.map_err(|fault| failed(&self.path, &fault))
    }
}

fn failed(path: &Path, fault: &std::io::Error) -> Stop {
    let text = format!("backup {}: {fault}; nothing was repaired", path.display());
    Failure::usage("backup", text).into()
}
