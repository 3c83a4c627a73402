//! One torture of one store: load with faults, heal, drain, stop, dump, judge.

use std::{
    fs,
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context as _, Result};
use holdpoint_storage::{Clock as _, Store, SystemClock};
use holdpoint_torture_check::{
    Dump, EventDump, Extra, Findings, History, Recorder, Report, Targets, check,
};
use serde_json::json;
use tokio::runtime::Runtime;

use crate::{
    effects,
    faults::Injector,
    graphs::{GRACE, LEASE},
    logs,
    options::{Options, StoreKind, USAGE},
    places,
    plan::{Planned, plan},
    planted,
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
    if options.planted.is_some() {
        return planted::main(&options);
    }
    let mut failed = Vec::new();
    for kind in options.stores.clone() {
        let targets = options.targets(kind);
        let plan = plan(options.seed, options.seconds, &targets, kind);
        let replay = options.replay(kind);
        println!("\n{replay}  # {} faults", plan.len());
        if options.only_plan {
            plan.iter().for_each(|Planned { at_ms, fault }| println!("{at_ms:>8} ms  {fault:?}"));
            continue;
        }
        let is_good = Torture::new(&options, kind)?.run(&plan, &targets);
        if !is_good.with_context(|| format!("replay with: {replay}"))? {
            failed.push(replay);
        }
    }
    failed.iter().for_each(|replay| println!("FAILED, replay with: {replay}"));
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// A torture of one store, in a folder of its own.
pub(crate) struct Torture<'a> {
    options: &'a Options,
    kind: StoreKind,
    folder: PathBuf,
    runtime: Runtime,
}

/// How long the phases took.
struct Times {
    load: Duration,
    drain: Duration,
    all: Duration,
}

impl<'a> Torture<'a> {
    pub(crate) fn new(options: &'a Options, kind: StoreKind) -> Result<Self> {
        let process = std::process::id();
        let bug = options.trial.map_or(String::new(), |trial| format!("-bug-{}", trial.number));
        let name = format!("holdpoint-torture-{}-{}-{process}{bug}", kind.name(), options.seed);
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(folder.join("history"))?;
        let mut runtime = tokio::runtime::Builder::new_multi_thread();
        let runtime = runtime.worker_threads(1).enable_all().build()?;
        Ok(Self { options, kind, folder, runtime })
    }

    /// Does all of it and prints the report. True: every target is met.
    pub(crate) fn run(self, plan: &[Planned], targets: &Targets) -> Result<bool> {
        let (findings, times) = self.judged(plan)?;
        let is_good = self.tell(&findings, targets, &times)?;
        self.runtime.shutdown_background();
        if is_good && !self.options.keep {
            fs::remove_dir_all(&self.folder)?;
        } else {
            println!("histories and logs: {}", self.folder.display());
        }
        Ok(is_good)
    }

    /// Does all of it, and answers with the report alone.
    pub(crate) fn report(self, plan: &[Planned], targets: &Targets) -> Result<Report> {
        let (findings, _) = self.judged(plan)?;
        let report = findings.report(targets);
        fs::write(self.folder.join("report.json"), report.to_json().to_string())?;
        self.runtime.shutdown_background();
        if self.options.keep {
            println!("histories and logs: {}", self.folder.display());
        } else {
            fs::remove_dir_all(&self.folder)?;
        }
        Ok(report)
    }

    fn judged(&self, plan: &[Planned]) -> Result<(Findings, Times)> {
        let (dump, left_over, times) = self.inflict(plan)?;
        write_down(&dump, &self.folder.join("dump.jsonl"))?;
        let logs = logs::read(&self.folder.join("logs"))?;
        let mut lines = History::read(&self.history())?.lines;
        lines.extend(logs::lines(&logs));
        Ok((check(&History::of(lines), &dump, &self.extra(left_over, logs)), times))
    }

    /// Everything until nothing runs any more: what the store holds, and who is left over.
    fn inflict(&self, plan: &[Planned]) -> Result<(Dump, Vec<String>, Times)> {
        let clock = SystemClock;
        let begun = clock.monotonic();
        let service = Recorder::open(&self.history(), "effects")?;
        let effects = self.runtime.block_on(effects::serve(service, self.options.seed))?;
        let mut rig = Rig::new(self.options, self.kind, &self.folder, &effects.to_string())?;
        rig.ensure()?;
        let told = Injector::new(&mut rig).run(plan, self.options.seconds * 1_000)?;
        println!("{} of {} faults found nothing to harm", told.in_vain, plan.len());
        let loaded = clock.monotonic();
        rig.stop_producers(STOP_MAX);
        self.runtime.block_on(drain(&mut rig))?;
        let drained = clock.monotonic();
        let survivors = rig.stop_workers(STOP_MAX);
        rig.answers.kill()?;
        let url = rig.own_url();
        let dump = self.runtime.block_on(async { dump(&url).await })?;
        drop(rig);
        let mark = format!("{ENV_HISTORY}={}", self.history().display());
        let mut left_over = slots::left_over(&mark)?;
        left_over.extend((0..survivors).map(|_| "a worker that SIGTERM did not end".to_owned()));
        let times =
            Times { load: loaded - begun, drain: drained - loaded, all: clock.monotonic() - begun };
        Ok((dump, left_over, times))
    }

    fn history(&self) -> PathBuf {
        self.folder.join("history")
    }

    fn extra(&self, leftovers: Vec<String>, logs: Vec<(String, String)>) -> Extra {
        let ms = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        Extra {
            lease_ms: ms(LEASE),
            grace_ms: ms(GRACE),
            unserved: Vec::new(),
            may_lose: self.kind == StoreKind::Redis,
            leftovers,
            canaries: vec![effects::token(self.options.seed)],
            logs,
            planted: None,
        }
    }

    fn tell(&self, findings: &Findings, targets: &Targets, times: &Times) -> Result<bool> {
        let report = findings.report(targets);
        println!("{report}");
        println!(
            "{}: load {:.0?}, drain {:.1?}, all {:.0?}; a power cut loses what was not synced, not \
             renames, and tears no sector",
            self.kind.name(),
            times.load,
            times.drain,
            times.all
        );
        fs::write(self.folder.join("report.json"), report.to_json().to_string())?;
        let missed = report.missed();
        findings.faults().iter().for_each(|fault| println!("  {fault}"));
        missed.iter().for_each(|missed| println!("MISSED {missed}"));
        Ok(missed.is_empty())
    }
}

/// Waits until every run has ended, or for as long as that may take.
async fn drain(rig: &mut Rig) -> Result<()> {
    let store = places::open(&rig.own_url()).await?;
    let begun = SystemClock.monotonic();
    loop {
        rig.ensure()?;
        let passed = SystemClock.monotonic().saturating_duration_since(begun);
        if unfinished(&*store).await? == 0 || passed > DRAIN_MAX {
            return Ok(());
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

async fn unfinished(store: &dyn Store) -> Result<u64> {
    let stats = store.stats().await?;
    Ok(stats.counts.iter().filter(|(status, _)| !status.is_terminal()).map(|(_, n)| n).sum())
}

async fn dump(url: &str) -> Result<Dump> {
    let store = places::open(url).await?;
    Ok(Dump::take(&*store).await?)
}

/// The runs of a dump with their journals, one on a line, for whoever looks for the cause.
fn write_down(dump: &Dump, path: &Path) -> Result<()> {
    let mut text = String::new();
    for run in &dump.runs {
        let event = |event: &EventDump| {
            let EventDump { seq, at_ms, epoch, event } = event;
            json!({ "seq": seq, "at_ms": at_ms, "epoch": epoch, "event": event })
        };
        let events: Vec<_> = run.events.iter().map(event).collect();
        let line = json!({
            "run": run.run, "graph": run.graph, "status": run.status, "reason": run.reason,
            "seq": run.seq, "epoch": run.epoch, "events": events,
        });
        text.push_str(&format!("{line}\n"));
    }
    Ok(fs::write(path, text)?)
}
