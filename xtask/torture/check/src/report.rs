//! The report: always the same rows in the same order, each with its target.

use std::fmt;

use serde_json::{Value, json};

use crate::{Findings, Samples};

/// What a run of the torture must reach, besides being right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Targets {
    /// Acknowledged runs.
    pub runs: u64,
    /// Kills of workers.
    pub worker_kills: u64,
    /// Kills of the store's server; none where the store has no server.
    pub store_kills: u64,
    /// Power cuts.
    pub power_cuts: u64,
    /// Pauses of workers.
    pub pauses: u64,
    /// Cuts of workers' ways to the store.
    pub cuts: u64,
    /// Stale writes that were refused: fewer show that the torture did not bite.
    pub refused: u64,
    /// Planted bugs; none when they are not part of this run.
    pub planted: Option<usize>,
}

impl Targets {
    /// Of each push.
    #[must_use]
    pub const fn push() -> Self {
        Self {
            runs: 3_000,
            worker_kills: 1_000,
            store_kills: 60,
            power_cuts: 20,
            pauses: 40,
            cuts: 40,
            refused: 20,
            planted: None,
        }
    }

    /// Of a soak.
    #[must_use]
    pub const fn soak() -> Self {
        Self {
            runs: 100_000,
            worker_kills: 10_000,
            store_kills: 600,
            power_cuts: 300,
            pauses: 500,
            cuts: 1_000,
            refused: 500,
            planted: Some(12),
        }
    }

    /// So many hundredths of all counts, rounded down but for what is not to vanish.
    #[must_use]
    pub fn scaled(&self, percent: u64) -> Self {
        let part = |count: u64| if count == 0 { 0 } else { (count * percent / 100).max(1) };
        Self {
            runs: part(self.runs),
            worker_kills: part(self.worker_kills),
            store_kills: part(self.store_kills),
            power_cuts: part(self.power_cuts),
            pauses: part(self.pauses),
            cuts: part(self.cuts),
            refused: part(self.refused),
            planted: self.planted,
        }
    }
}

/// One figure with its target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// What it is.
    pub figure: &'static str,
    /// What it is to be.
    pub target: String,
    /// What it is.
    pub value: String,
    /// Whether it is as it is to be.
    pub is_ok: bool,
}

/// The table.
#[derive(Debug, Clone)]
pub struct Report {
    rows: Vec<Row>,
    findings: Findings,
}

impl Report {
    pub(crate) fn new(findings: &Findings, targets: &Targets) -> Self {
        let mut rows = table(findings, targets);
        rows.extend(further(findings));
        rows.extend(unjudged(findings));
        Self { rows, findings: findings.clone() }
    }

    /// All rows.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// The figures that are not as they are to be.
    #[must_use]
    pub fn missed(&self) -> Vec<String> {
        let missed = self.rows.iter().filter(|row| !row.is_ok);
        missed.map(|row| format!("{}: {}, not {}", row.figure, row.value, row.target)).collect()
    }

    /// Rows and findings, for machines.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let row = |row: &Row| {
            let Row { figure, target, value, is_ok } = row;
            json!({ "figure": figure, "target": target, "value": value, "ok": is_ok })
        };
        json!({
            "rows": self.rows.iter().map(row).collect::<Vec<_>>(),
            "findings": self.findings,
            "missed": self.missed(),
        })
    }
}

/// The rows that every report has had from the beginning.
fn table(found: &Findings, targets: &Targets) -> Vec<Row> {
    let Findings { injected, queue, fencing, nodes, .. } = found;
    let lost_ok = queue.lost.count == 0 || (found.may_lose && queue.window_ms.is_some());
    let queue_ok = queue.acknowledged >= targets.runs
        && lost_ok
        && queue.unexpected.count + queue.duplicated.count == 0;
    let faults = [
        (injected.worker_kills, targets.worker_kills),
        (injected.store_kills, targets.store_kills),
        (injected.power_cuts, targets.power_cuts),
        (injected.pauses, targets.pauses),
        (injected.cuts, targets.cuts),
    ];
    let list = |values: [u64; 5]| values.map(|value| value.to_string()).join(", ");
    vec![
        row(
            "acknowledged / lost / unexpected / duplicated / recovered",
            format!("≥ {} / {} / 0 / 0 / n", targets.runs, if found.may_lose { "n" } else { "0" }),
            format!(
                "{} / {} / {} / {} / {}",
                queue.acknowledged,
                queue.lost.count,
                queue.unexpected.count,
                queue.duplicated.count,
                queue.recovered
            ),
            queue_ok,
        ),
        row(
            "worker kills, store kills, power cuts, pauses, cuts",
            format!("≥ {}", list(faults.map(|(_, target)| target))),
            list(faults.map(|(count, _)| count)),
            faults.iter().all(|(count, target)| count >= target),
        ),
        row(
            "stale writes accepted / refused",
            format!("0 / ≥ {}", targets.refused),
            format!("{} / {}", fencing.accepted.count, fencing.refused),
            fencing.accepted.count == 0 && fencing.refused >= targets.refused,
        ),
        none("nodes re-executed after their commit", nodes.after_commit.count),
        redone(nodes.redone_per_kill()),
        none("unsafe effects called twice", found.effects.unsafe_twice.count),
        pair(
            "signals acknowledged and not applied / applied twice",
            (found.signals.not_applied.count, found.signals.applied_twice.count),
        ),
        none("false steals from live workers", found.steals.stolen.count),
        recovery(found),
        stuck(found),
        none("overlap of two owners, ms", fencing.overlap_ms),
        none("tool processes left over", found.leftovers.len() as u64),
        planted(found, targets.planted),
    ]
}

fn redone(mean: f64) -> Row {
    row("nodes redone per worker kill, mean", "≤ 1.0", format!("{mean:.2}"), mean <= 1.0)
}

fn recovery(found: &Findings) -> Row {
    let (recovery, kills) = (&found.recovery, found.injected.worker_kills);
    // Without a sample nothing was shown, unless nobody was killed.
    let has_samples = !recovery.process.is_empty() || !recovery.machine.is_empty();
    let is_ok = recovery.process.percentile(99) < PROCESS_MS
        && recovery.machine.percentile(99) <= found.machine_ms_max
        && (has_samples || kills == 0);
    row(
        "recovery after a worker kill, ms: process p50 / p99 / max; machine p50 / p99 / max",
        format!("p99 < {PROCESS_MS}; p99 ≤ {}", found.machine_ms_max),
        format!(
            "{}; {}; not judged, the store was away too: {}",
            percentiles(&recovery.process),
            percentiles(&recovery.machine),
            percentiles(&recovery.held)
        ),
        is_ok,
    )
}

fn stuck(found: &Findings) -> Row {
    row(
        "stuck after heal",
        "0",
        match found.liveness.is_healed {
            true => found.liveness.stuck.count.to_string(),
            false => "never healed".to_owned(),
        },
        found.liveness.is_healed && found.liveness.stuck.count == 0,
    )
}

fn planted(found: &Findings, target: Option<usize>) -> Row {
    let (caught, missed) = found.planted.as_ref().map_or((0, 0), |(c, m)| (c.len(), m.len()));
    row(
        "planted bugs caught",
        target.map_or("–".to_owned(), |planted| format!("{planted} of {planted}")),
        found
            .planted
            .as_ref()
            .map_or("–".to_owned(), |_| format!("{caught} of {}", caught + missed)),
        missed == 0 && target.is_none_or(|planted| caught >= planted),
    )
}

/// What else must hold.
fn further(found: &Findings) -> Vec<Row> {
    let Findings { nodes, effects, signals, cancels, stored, .. } = found;
    vec![
        none("refused and stored all the same", found.queue.refused_but_stored.count),
        pair(
            "signals to another question / refused and applied",
            (signals.foreign.count, signals.refused_but_applied.count),
        ),
        pair(
            "nodes that ran ahead of a commit / done without having run",
            (nodes.ran_ahead.count, nodes.never_ran.count),
        ),
        none(
            "effects under a wrong key or without a class",
            effects.other_key.count + effects.shared_key.count + effects.unclassed.count,
        ),
        pair("after a cancel: steps / nodes", (cancels.stepped.count, cancels.began.count)),
        none("cancelled and not ended", cancels.unended.count),
        none("findings of the store's own check", stored.conservation.count),
        none("faults in chains", stored.chain.count),
        none("workers not healed", found.liveness.unhealed.count),
        none("secrets found", found.canary.found.count),
    ]
}

/// The target of a figure that is not judged.
const ANY: &str = "n";

/// Figures without a target: how much the run of the torture showed, and where it saw nothing.
fn unjudged(found: &Findings) -> Vec<Row> {
    let Findings { fencing, nodes, effects, signals, steals, recovery, .. } = found;
    let any = |figure, value| row(figure, ANY, value, true);
    let window = found.queue.window_ms.map_or("unexplained".to_owned(), |ms| ms.to_string());
    vec![
        any(
            "recovery while the store was away too, ms: p50 / p99 / max",
            percentiles(&recovery.held),
        ),
        any("losses of workers / of those that had given up", {
            format!("{} / {}", steals.losses, steals.given_up)
        }),
        any("stopped workers that woke without their lease / ms until they noticed", {
            format!("{} / {}", fencing.residues, fencing.residue_ms)
        }),
        any("executions of nodes / without a seen end", {
            format!("{} / {}", nodes.executions, fencing.unseen)
        }),
        any("signals acknowledged / overtaken / recovered", {
            format!("{} / {} / {}", signals.acknowledged, signals.overtaken, signals.recovered)
        }),
        any("cancels acknowledged", found.cancels.acknowledged.to_string()),
        any("calls of effects", effects.calls.to_string()),
        any("taken by a store that may lose: signals / effects / window in ms", {
            format!("{} / {} / {window}", signals.lost, effects.forgotten)
        }),
    ]
}

/// What a dead process may cost.
const PROCESS_MS: u64 = 1_000;

fn row(
    figure: &'static str,
    target: impl Into<String>,
    value: impl Into<String>,
    is_ok: bool,
) -> Row {
    Row { figure, target: target.into(), value: value.into(), is_ok }
}

/// A figure that is to be 0.
fn none(figure: &'static str, value: u64) -> Row {
    row(figure, "0", value.to_string(), value == 0)
}

/// Two figures that are to be 0.
fn pair(figure: &'static str, (one, other): (u64, u64)) -> Row {
    row(figure, "0 / 0", format!("{one} / {other}"), one + other == 0)
}

fn percentiles(samples: &Samples) -> String {
    if samples.is_empty() {
        return "–".to_owned();
    }
    let [p50, p99, max] = [50, 99, 100].map(|share| samples.percentile(share));
    format!("{p50} / {p99} / {max} of {}", samples.len())
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "| figure | target | value | |\n| --- | --- | --- | --- |")?;
        for Row { figure, target, value, is_ok } in &self.rows {
            let verdict = if *is_ok { "ok" } else { "MISSED" };
            writeln!(f, "| {figure} | {target} | {value} | {verdict} |")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
