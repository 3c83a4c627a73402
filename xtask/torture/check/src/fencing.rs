//! Fencing: only the newest claim may write, and no two owners are at work at one time.
//!
//! *Stale writes accepted* has two witnesses. The journal: an owner's event that follows one of a
//! later epoch, or that names an epoch which never claimed the run. And whoever records its calls
//! (lines `claim`, `commit`, `renew`, `release`): a call that was sent after somebody else had been
//! given the run, and was taken. The second also sees what leaves no event, and two owners with one
//! epoch, as a failover may hand out.
//! *Refused* counts the lines `E_FENCED`; without any, a run of the torture proved nothing.
//!
//! *Overlap* compares executions of one run under different pairs. The time in which a process was
//! stopped does not count, for it did nothing then; what it did after it was let go on, until it
//! noticed, is counted apart as *residue*: that is the honest limit of every lease.
//! An execution whose end nobody saw ends with the last line about it, so the overlap is then a
//! lower bound; `unseen` says how many there are.

use std::collections::{BTreeSet, HashMap};

use holdpoint_graph::Event;
use serde::Serialize;

use crate::{
    Op, Phase,
    count::Count,
    facts::{APART_MS, End, Execution, Facts, MS},
    fault,
};

/// What owners did to each other.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Fencing {
    /// Writes of an owner that was no longer the newest, and were taken.
    pub accepted: Count,
    /// Writes that were refused as fenced.
    pub refused: u64,
    /// Two owners at work on one run at one time.
    pub overlaps: Count,
    /// The longest of these overlaps, in ms, rounded up.
    pub overlap_ms: u64,
    /// How often a process that had been stopped went on with what was no longer its own.
    pub residues: u64,
    /// The longest time until it noticed, in ms, rounded up.
    pub residue_ms: u64,
    /// Executions whose end nobody saw.
    pub unseen: u64,
}

pub(crate) fn check(facts: &Facts<'_>) -> Fencing {
    let mut found = Fencing::default();
    for run in &facts.dump.runs {
        journal(&run.run, run.events.iter().map(|e| (e.seq, e.epoch, &e.event)), &mut found);
    }
    calls(facts, &mut found);
    overlaps(facts, &mut found);
    found
}

fn journal<'a>(
    run: &str,
    events: impl Iterator<Item = (u64, u64, &'a Event)>,
    found: &mut Fencing,
) {
    let (mut newest, mut claimed) = (0, BTreeSet::new());
    for (seq, epoch, event) in events.filter(|(_, epoch, _)| *epoch != 0) {
        if let Event::Claimed { epoch, .. } = event {
            claimed.insert(*epoch);
        }
        // The beginning and the losses of earlier owners stand in front of the claim of the one
        // who writes them.
        let announces = matches!(
            event,
            Event::RunStarted { .. } | Event::Claimed { .. } | Event::WorkerLost { .. }
        );
        if epoch < newest {
            found.accepted.add(format!("{run}: event {seq} of epoch {epoch} follows {newest}"));
        } else if !announces && !claimed.contains(&epoch) {
            found.accepted.add(format!("{run}: event {seq} of epoch {epoch}, which has no claim"));
        }
        newest = newest.max(epoch);
    }
}

/// What an owner does to its run, as lines name it; each is refused to any but the newest.
const WRITES: [&str; 3] = ["commit", "renew", "release"];

/// Epoch and nonce; the nonce is empty where a journal is the witness.
type Pair<'a> = (i64, &'a str);

/// The calls as workers recorded them, against all that shows when somebody had been given a run.
fn calls(facts: &Facts<'_>, found: &mut Fencing) {
    let claims = claims(facts);
    let mut sent: HashMap<(&str, &str, &str), u64> = HashMap::new();
    for line in facts.history.lines.iter().filter(|line| line.op == Op::Worker) {
        let code = line.code_text();
        if code == "E_FENCED" {
            found.refused += 1;
        }
        if code == "stale_taken" {
            let run = line.run.as_deref().unwrap_or_default();
            let (by, call, epoch) = (&line.process, &line.id, line.epoch.unwrap_or(0));
            found.accepted.add(format!("{run}: a {call} of {by} under epoch {epoch}"));
        }
        if !WRITES.contains(&code) {
            continue;
        }
        let call = (line.process.as_str(), code, line.id.as_str());
        match line.phase {
            Phase::Invoke => {
                sent.insert(call, line.mono);
            }
            Phase::Ok => {
                let Some(sent) = sent.remove(&call) else { continue };
                let run = line.run.as_deref().unwrap_or_default();
                let pair = (line.epoch.unwrap_or(0), line.nonce.as_deref().unwrap_or_default());
                let claims = claims.get(run).map(Vec::as_slice).unwrap_or_default();
                if let Some(epoch) = newer(claims, pair, sent) {
                    let (by, old) = (&line.process, pair.0);
                    found.accepted.add(format!(
                        "{run}: a {code} of {by} under epoch {old} after {epoch} had claimed it"
                    ));
                }
            }
            Phase::Fail | Phase::Unknown => {}
        }
    }
}

/// The epoch of somebody who had been given the run after the owner of `pair`, and before `sent`.
fn newer(claims: &[(u64, Pair<'_>)], pair: Pair<'_>, sent: u64) -> Option<i64> {
    let own = claims.iter().find(|(_, other)| *other == pair).map(|(at, _)| *at);
    let is_newer = |(at, (epoch, nonce)): &&(u64, Pair<'_>)| {
        // With one epoch on both sides, as after a failover, only times and nonces can tell.
        let twin = *epoch == pair.0
            && !nonce.is_empty()
            && *nonce != pair.1
            && own.is_some_and(|own| own < *at);
        *at < sent && (*epoch > pair.0 || twin)
    };
    claims.iter().find(is_newer).map(|(_, (epoch, _))| *epoch)
}

/// When it is seen that each pair had been given its run: by the claim's own line, by a node that
/// ran under it, or by the journal.
fn claims<'a>(facts: &Facts<'a>) -> HashMap<&'a str, Vec<(u64, Pair<'a>)>> {
    let mut found: HashMap<&str, Vec<(u64, Pair<'_>)>> = HashMap::new();
    for line in facts.history.lines.iter().filter(|line| line.op == Op::Worker) {
        if let ("claim", Phase::Ok, Some(run)) = (line.code_text(), line.phase, &line.run) {
            let pair = (line.epoch.unwrap_or(0), line.nonce.as_deref().unwrap_or_default());
            found.entry(run).or_default().push((line.mono, pair));
        }
    }
    for execution in &facts.executions {
        found.entry(execution.run).or_default().push((execution.begin, execution.pair()));
    }
    for run in &facts.dump.runs {
        for event in &run.events {
            if let Event::Claimed { epoch, at_ms, .. } = &event.event {
                // By the end of the store's millisecond, and of what two clocks may differ.
                let at = facts.mono(at_ms + APART_MS);
                let epoch = i64::try_from(*epoch).unwrap_or(i64::MAX);
                found.entry(run.run.as_str()).or_default().push((at, (epoch, "")));
            }
        }
    }
    found.values_mut().for_each(|claims| claims.sort_unstable());
    found
}

fn overlaps(facts: &Facts<'_>, found: &mut Fencing) {
    let is_unseen = |execution: &&Execution<'_>| matches!(execution.end, End::Unseen(_));
    found.unseen = facts.executions.iter().filter(is_unseen).count() as u64;
    let runs: BTreeSet<&str> = facts.executions.iter().map(|execution| execution.run).collect();
    for run in runs {
        let executions: Vec<&Execution<'_>> = facts.executions_of(run).collect();
        for (at, later) in executions.iter().enumerate() {
            for earlier in executions.iter().take(at) {
                if earlier.pair() != later.pair() {
                    compare(facts, earlier, later, found);
                }
            }
        }
    }
}

fn compare(facts: &Facts<'_>, earlier: &Execution<'_>, later: &Execution<'_>, found: &mut Fencing) {
    let (begin, end) = (later.begin, earlier.end.at().min(later.end.at()));
    // An end that nobody saw is no work either: the last line may be the later one's beginning.
    if begin >= end {
        return;
    }
    let pauses: Vec<(u64, u64)> = facts
        .hits(&[fault::PAUSE], earlier.process)
        .chain(facts.hits(&[fault::PAUSE], later.process))
        .map(|pause| (pause.begin.max(begin), pause.end.min(end)))
        .filter(|(from, to)| from < to)
        .collect();
    let ns = end - begin - covered(pauses);
    let was_stopped = facts
        .hits(&[fault::PAUSE], earlier.process)
        .any(|pause| pause.begin < end && pause.end > earlier.begin);
    let ms = ns.div_ceil(MS);
    if was_stopped {
        found.residues += 1;
        found.residue_ms = found.residue_ms.max(ms);
    } else if ms > 0 {
        found.overlap_ms = found.overlap_ms.max(ms);
        found.overlaps.add(format!("{} and {}: {ms} ms", earlier.place(), later.place()));
    }
}

/// The length of the union.
fn covered(mut spans: Vec<(u64, u64)>) -> u64 {
    spans.sort_unstable();
    let (mut sum, mut until) = (0, 0);
    for (from, to) in spans {
        sum += to.saturating_sub(from.max(until));
        until = until.max(to);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Line,
        testing::{World, claimed, completed, done, lost, run},
    };

    const A: (&str, &str, u64) = ("r", "a", 1);

    fn call(world: &mut World, worker: &str, epoch: i64, code: &str, phase: Phase) {
        let line = Line::now(Op::Worker, phase, "q").code(code).run("r");
        world.line(worker, line.pair(epoch, format!("{worker}-{epoch}")));
    }

    #[test]
    fn one_owner_after_the_other_is_good() {
        let mut world = World::new();
        world.at(1).node("w1", A, 5, Phase::Invoke);
        world.at(9).fault("w1", fault::KILL, Phase::Invoke);
        world.at(9).node("w2", A, 6, Phase::Invoke).at(12).node("w2", A, 6, Phase::Ok);
        let journal = run("r").event(5, claimed("w1", 5, 1)).event(0, completed());
        let journal = journal.event(6, lost("w1", 5, (1, 9), "signal 9"));
        world.has(journal.event(6, claimed("w2", 6, 9)).event(6, done("a", 1)));
        let found = check(&world.facts());
        assert_eq!((found.accepted.count, found.overlaps.count, found.unseen), (0, 0, 0));
    }

    #[test]
    fn an_event_of_an_older_epoch_was_a_stale_write() {
        let mut world = World::new();
        let journal = run("r").event(5, claimed("w1", 5, 1)).event(6, claimed("w2", 6, 2));
        world.has(journal.event(5, done("a", 1)));
        let found = check(&world.facts());
        assert_eq!(found.accepted.examples, ["r: event 2 of epoch 5 follows 6"]);
    }

    #[test]
    fn an_event_of_an_epoch_that_never_claimed_was_a_stale_write() {
        let mut world = World::new();
        world.has(run("r").event(5, claimed("w1", 5, 1)).event(7, done("a", 1)));
        assert_eq!(check(&world.facts()).accepted.count, 1);
    }

    #[test]
    fn a_commit_sent_after_another_claim_may_not_be_taken() {
        for (sent, accepted) in [(1, 0), (6, 1)] {
            let mut world = World::new();
            // One epoch on both sides, as after a failover: the nonce tells them apart.
            call(&mut world, "w1", 5, "claim", Phase::Ok);
            call(world.at(sent), "w1", 5, "commit", Phase::Invoke);
            call(world.at(4), "w2", 5, "claim", Phase::Ok);
            call(world.at(8), "w1", 5, "commit", Phase::Ok);
            world.history.lines.sort_by_key(|line| line.mono);
            assert_eq!(check(&world.facts()).accepted.count, accepted, "sent at {sent}");
        }
    }

    /// Whatever shows that there is a later owner, and whatever the earlier one does.
    #[test]
    fn no_call_of_an_owner_may_be_taken_once_there_is_a_later_one() {
        for code in WRITES {
            for witness in 0..3 {
                let mut world = World::new();
                call(world.at(1), "w1", 5, "claim", Phase::Ok);
                match witness {
                    0 => call(world.at(4), "w2", 6, "claim", Phase::Ok),
                    1 => drop(world.at(4).node("w2", A, 6, Phase::Invoke)),
                    _ => drop(world.has(run("r").event(6, claimed("w2", 6, 4)))),
                }
                call(world.at(20), "w1", 5, code, Phase::Invoke);
                call(world.at(21), "w1", 5, code, Phase::Ok);
                assert_eq!(check(&world.facts()).accepted.count, 1, "{code} {witness}");
                world.history.lines.last_mut().unwrap().phase = Phase::Fail;
                assert_eq!(check(&world.facts()).accepted.count, 0, "{code} {witness}");
            }
        }
    }

    #[test]
    fn refusals_are_counted() {
        let mut world = World::new();
        world.worker("w1", "E_FENCED").worker("w1", "E_FENCED").worker("w1", "start");
        assert_eq!(check(&world.facts()).refused, 2);
    }

    #[test]
    fn a_stale_write_that_was_taken_is_accepted() {
        let mut world = World::new();
        world.worker("z1", "E_FENCED").worker("z1", "stale_taken");
        let found = check(&world.facts());
        assert_eq!((found.accepted.count, found.refused), (1, 1));
    }

    #[test]
    fn two_owners_at_one_time_overlap() {
        let mut world = World::new();
        world.at(1).node("w1", A, 5, Phase::Invoke).at(10).node("w2", A, 6, Phase::Invoke);
        world.at(14).node("w1", A, 5, Phase::Ok).at(20).node("w2", A, 6, Phase::Ok);
        let found = check(&world.facts());
        assert_eq!((found.overlaps.count, found.overlap_ms), (1, 4));
        // Another node of the run is the same thing.
        let mut world = World::new();
        world.at(1).node("w1", ("r", "b", 1), 5, Phase::Invoke);
        world.at(10).node("w2", A, 6, Phase::Invoke).at(12).node("w2", A, 6, Phase::Ok);
        world.at(14).node("w1", ("r", "b", 1), 5, Phase::Fail);
        assert_eq!(check(&world.facts()).overlap_ms, 2);
    }

    #[test]
    fn parallel_branches_of_one_owner_are_no_overlap() {
        let mut world = World::new();
        world.at(1).node("w1", A, 5, Phase::Invoke).node("w1", ("r", "b", 1), 5, Phase::Invoke);
        world.at(9).node("w1", A, 5, Phase::Ok).node("w1", ("r", "b", 1), 5, Phase::Ok);
        assert_eq!(check(&world.facts()).overlaps.count, 0);
    }

    #[test]
    fn a_stopped_process_does_nothing_and_what_follows_is_residue() {
        let mut world = World::new();
        world.at(1).node("w1", A, 5, Phase::Invoke).at(2).fault("w1", fault::PAUSE, Phase::Invoke);
        world.at(10).node("w2", A, 6, Phase::Invoke);
        world.at(15).fault("w1", fault::PAUSE, Phase::Ok);
        world.at(18).node("w1", A, 5, Phase::Fail).at(20).node("w2", A, 6, Phase::Ok);
        let found = check(&world.facts());
        assert_eq!((found.overlap_ms, found.residues, found.residue_ms), (0, 1, 3));
    }

    #[test]
    fn an_end_that_nobody_saw_is_reported() {
        let mut world = World::new();
        world.at(1).node("w1", A, 5, Phase::Invoke).at(10).node("w2", A, 6, Phase::Invoke);
        world.at(12).node("w2", A, 6, Phase::Ok);
        let found = check(&world.facts());
        assert_eq!((found.overlaps.count, found.unseen), (0, 1));
        // A stamp of the first owner shows that it was still at work.
        world.at(11).node("w1", A, 5, Phase::Unknown);
        world.history.lines.sort_by_key(|line| line.mono);
        assert_eq!(check(&world.facts()).overlap_ms, 1);
    }
}
