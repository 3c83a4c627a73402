//! One torture of one store: load with faults, heal, drain, stop, dump, judge.

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context as _, Result};
use holdpoint_storage::{Clock as _, Store, SystemClock};
use holdpoint_torture_check::{Dump, History, Recorder};
use tokio::runtime::Runtime;

use crate::{
    effects,
    faults::Injector,
    options::{Options, StoreKind, USAGE},
    places,
    plan::plan,
    recorder::ENV_HISTORY,
    rig::Rig,
    slots,
};

/// How long the runs that are left may take to end once all faults are over.
const DRAIN_MAX: Duration = Duration::from_secs(20);
/// How long processes may take to end.
const STOP_MAX: Duration = Duration::from_secs(10);
/// The pause between two looks at what is left.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Runs the harness.
pub(crate) fn main(args: &[String]) -> Result<ExitCode> {
    if args.iter().any(|arg| arg == "--help") {
        println!("{USAGE}");
        return Ok(ExitCode::SUCCESS);
    }
    let options = Options::parse(args)?;
    let mut is_good = true;
    for kind in options.stores.clone() {
        is_good &= torture(&options, kind)
            .with_context(|| format!("replay with: {}", options.replay(kind)))?;
    }
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Tortures one store. True: every target is met.
fn torture(options: &Options, kind: StoreKind) -> Result<bool> {
    let counts = options.counts(kind);
    let plan = plan(options.seed, options.seconds, &counts, kind);
    println!("{}  # {} faults", options.replay(kind), plan.len());
    if options.only_plan {
        plan.iter().for_each(|planned| println!("{:>8} ms  {:?}", planned.at_ms, planned.fault));
        return Ok(true);
    }
    let begun = SystemClock.monotonic();
    let folder = folder(options.seed, kind)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let service = Recorder::open(&made(&folder.join("history"))?, "effects")?;
    let effects = runtime.block_on(effects::serve(service, options.seed))?;
    let mut rig = Rig::new(options, kind, &folder, &effects.to_string())?;
    rig.ensure()?;
    let told = Injector::new(&mut rig).run(&plan, options.seconds * 1_000)?;
    let loaded = SystemClock.monotonic();
    rig.stop_producers(STOP_MAX);
    let left = runtime.block_on(drain(&mut rig))?;
    let drained = SystemClock.monotonic();
    let survivors = rig.stop_workers(STOP_MAX);
    rig.answers.kill()?;
    let dump = runtime.block_on(dump(&rig.own_url()))?;
    let history = History::read(&folder.join("history"))?;
    let mark = format!("{ENV_HISTORY}={}", folder.join("history").display());
    let left_over = slots::left_over(&mark)?;
    println!(
        "{} lines, {} runs, {left} left, {survivors} survivors, {} left over, in vain {}; load {:?}, drain {:?}",
        history.lines.len(),
        dump.runs.len(),
        left_over.len(),
        told.in_vain,
        loaded - begun,
        drained - loaded
    );
    for status in ["completed", "failed", "cancelled", "queued", "running", "parked", "scheduled"] {
        let count = dump.runs.iter().filter(|run| run.status == status).count();
        println!("  {status}: {count}");
    }
    println!("{}", folder.display());
    let _ = runtime_end(runtime);
    Ok(left == 0)
}

fn runtime_end(runtime: Runtime) -> Result<()> {
    runtime.shutdown_background();
    Ok(())
}

/// Waits until every run has ended. Answers how many have not.
async fn drain(rig: &mut Rig) -> Result<u64> {
    let store = places::open(&rig.own_url()).await?;
    let begun = SystemClock.monotonic();
    loop {
        rig.ensure()?;
        let left = unfinished(&store).await?;
        let passed = SystemClock.monotonic().saturating_duration_since(begun);
        if left == 0 || passed > DRAIN_MAX {
            return Ok(left);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn unfinished(store: &std::sync::Arc<dyn Store>) -> Result<u64> {
    let stats = store.stats().await?;
    Ok(stats.counts.iter().filter(|(status, _)| !status.is_terminal()).map(|(_, n)| n).sum())
}

async fn dump(url: &str) -> Result<Dump> {
    let store = places::open(url).await?;
    Ok(Dump::take(&*store).await?)
}

/// A new folder for this torture.
fn folder(seed: u64, kind: StoreKind) -> Result<PathBuf> {
    let name = format!("holdpoint-torture-{}-{seed}-{}", kind.name(), std::process::id());
    made(&std::env::temp_dir().join(name))
}

fn made(path: &Path) -> Result<PathBuf> {
    std::fs::create_dir_all(path)?;
    Ok(path.to_owned())
}
