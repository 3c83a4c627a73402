//! `doctor`: what the store says of itself, and what stands out from outside.

use holdpoint_producer::{Producer, WorkerState};
use holdpoint_storage::{Clock, Finding, Level, SystemClock};

use crate::{context::Context, failure::Stop, place::Access};

/// A difference between the store's clock and this host's that is worth a word.
const CLOCK_MS_MAX: u64 = 2_000;
/// The age of waiting runs that nobody serves from which it is worth a word.
const UNSERVED_S_MAX: i64 = 3_600;

/// Prints one line for each finding; ends with 3 when one is bad.
pub(crate) async fn run(context: &Context) -> Result<(), Stop> {
    let producer = context.producer(Access::Existing).await?;
    let mut findings = producer.store().check().await?;
    if !findings.iter().any(|finding| finding.check == "clock") {
        findings.push(clock(&producer).await?);
    }
    findings.push(Finding::new(Level::Ok, "settings", context.settings.provenance(), ""));
    findings.extend(unserved(&producer).await?);
    findings.extend(lost_workers(&producer).await?);
    for finding in &findings {
        context.out.show(finding, || line(context, finding))?;
    }
    if findings.iter().any(|finding| finding.level == Level::Bad) {
        return Err(Stop::Exit(3));
    }
    Ok(())
}

pub(super) fn line(context: &Context, finding: &Finding) -> String {
    let paint = context.out.paint;
    let level = match finding.level {
        Level::Ok => paint.green("ok  "),
        Level::Warn => paint.yellow("warn"),
        Level::Bad => paint.red("bad "),
    };
    let text = holdpoint_graph::printable(&finding.text, 500);
    let mut line = format!("{level}  {}: {text}", paint.bold(&finding.check));
    if finding.level != Level::Ok && !finding.fix.is_empty() {
        line.push_str(&format!("\n      {}", holdpoint_graph::printable(&finding.fix, 500)));
    }
    line
}

async fn clock(producer: &Producer) -> Result<Finding, Stop> {
    let store_ms = producer.store().now_ms().await?;
    let apart = SystemClock.wall_ms().abs_diff(store_ms);
    let text = format!("this host's and the store's are {apart} ms apart");
    let level = if apart > CLOCK_MS_MAX { Level::Warn } else { Level::Ok };
    Ok(Finding::new(level, "clock", text, "let both follow the same time server"))
}

async fn unserved(producer: &Producer) -> Result<Vec<Finding>, Stop> {
    let stats = producer.stats().await?;
    let lanes = stats.lanes.iter().filter(|lane| !lane.served && lane.queued > 0);
    let finding = |lane: &holdpoint_producer::LaneView| {
        let age = lane.oldest_age_s.unwrap_or(0);
        let version = lane.fingerprint.as_ref().map_or_else(String::new, |f| format!(" in {f}"));
        let text = format!(
            "{} runs of graph {}{version} wait in queue {} and no live worker serves them; the \
             oldest for {age} s",
            lane.queued, lane.graph, lane.queue
        );
        let level = if age > UNSERVED_S_MAX { Level::Bad } else { Level::Warn };
        Finding::new(level, "unserved", text, "start a worker that has the graph in that version")
    };
    Ok(lanes.map(finding).collect())
}

async fn lost_workers(producer: &Producer) -> Result<Vec<Finding>, Stop> {
    let workers = producer.workers().await?;
    let holding = workers.iter().filter(|w| w.state == WorkerState::Lost && !w.runs.is_empty());
    let finding = |worker: &holdpoint_producer::WorkerView| {
        let text = format!("{} is lost and still holds {} runs", worker.worker, worker.runs.len());
        Finding::new(Level::Warn, "workers", text, "any live worker takes them over; start one")
    };
    Ok(holding.map(finding).collect())
}
