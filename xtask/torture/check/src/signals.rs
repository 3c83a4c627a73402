//! Signals: each acknowledged answer is applied once, to the question it was given for.
//!
//! Journals name the request that brought an answer, so each line is matched to its event by id.
//! *Overtaken* are answers that were taken in and never used because the run ended first, or
//! because its gate never opened: nothing is wrong with them, but when they are many the run of the
//! torture shows little.
//! Cannot show: an answer with a changed value under its right request id.

use std::collections::{BTreeMap, HashMap};

use holdpoint_graph::{Event, Interrupt};
use serde::Serialize;

use crate::{Line, Op, Phase, RunDump, count::Count, facts::Facts};

/// What became of answers.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Signals {
    /// Answers that were acknowledged.
    pub acknowledged: u64,
    /// Acknowledged, the question was open, and the answer is not in the journal.
    pub not_applied: Count,
    /// Applied more than once, or a question that was answered more than once.
    pub applied_twice: Count,
    /// Taken although it was to be refused, or applied to a question it was not given for.
    pub foreign: Count,
    /// Refused for sure, and applied all the same.
    pub refused_but_applied: Count,
    /// Acknowledged, and the run ended or went another way first.
    pub overtaken: u64,
    /// Acknowledged, not applied, and perhaps lost by a store that may lose.
    pub lost: u64,
    /// Outcome unknown, and applied.
    pub recovered: u64,
}

#[derive(Default)]
struct Sent<'a> {
    run: &'a str,
    /// When it was first sent, by the wall clock.
    since_ms: Option<i64>,
    to: Option<&'a str>,
    is_foreign: bool,
    acknowledged: Option<u64>,
    is_open: bool,
    is_refused: bool,
}

pub(crate) fn check(facts: &Facts<'_>) -> Signals {
    let mut sent: BTreeMap<&str, Sent<'_>> = BTreeMap::new();
    for line in facts.history.lines.iter().filter(|line| line.op == Op::Signal) {
        note(sent.entry(&line.id).or_default(), line);
    }
    let mut found = Signals::default();
    let mut applied: HashMap<(&str, &str), Vec<&Interrupt>> = HashMap::new();
    for run in &facts.dump.runs {
        answers(run, &mut applied, &mut found);
    }
    for (id, sent) in &sent {
        let applied = applied.get(&(sent.run, *id)).map(Vec::as_slice).unwrap_or_default();
        judge(facts, (id, sent), applied, &mut found);
    }
    found
}

fn note<'a>(sent: &mut Sent<'a>, line: &'a Line) {
    sent.run = line.run.as_deref().unwrap_or(sent.run);
    sent.to = line.node.as_deref().or(sent.to);
    let foreign = line.detail.as_ref().and_then(|detail| detail.get("foreign")?.as_bool());
    sent.is_foreign |= foreign.unwrap_or(false);
    match line.phase {
        Phase::Invoke => sent.since_ms = sent.since_ms.or(Some(line.wall)),
        Phase::Ok => sent.acknowledged = sent.acknowledged.or(Some(line.mono)),
        Phase::Fail => sent.is_refused = true,
        Phase::Unknown => sent.is_open = true,
    }
}

/// The questions that each request answered, and those that were answered twice.
fn answers<'a>(
    run: &'a RunDump,
    applied: &mut HashMap<(&'a str, &'a str), Vec<&'a Interrupt>>,
    found: &mut Signals,
) {
    let mut opened: HashMap<&str, (&Interrupt, u32)> = HashMap::new();
    for event in &run.events {
        match &event.event {
            Event::InterruptOpened { interrupt } => {
                opened.entry(interrupt.interrupt.as_str()).or_insert((interrupt, 0));
            }
            Event::InterruptAnswered { interrupt, request, .. } => {
                let Some((question, answers)) = opened.get_mut(interrupt.as_str()) else {
                    found.foreign.add(format!("{}: {interrupt} was never open", run.run));
                    continue;
                };
                *answers += 1;
                if *answers > 1 {
                    found.applied_twice.add(format!("{}: {interrupt} by {request}", run.run));
                }
                applied.entry((run.run.as_str(), request.as_str())).or_default().push(*question);
            }
            _ => {}
        }
    }
}

fn judge(
    facts: &Facts<'_>,
    (id, sent): (&str, &Sent<'_>),
    applied: &[&Interrupt],
    found: &mut Signals,
) {
    let place = || format!("{id} to {} of {}", sent.to.unwrap_or("?"), sent.run);
    if sent.is_foreign && (sent.acknowledged.is_some() || !applied.is_empty()) {
        found.foreign.add(place());
        return;
    }
    let fits = |question: &&Interrupt| {
        sent.to.is_none_or(|to| question.interrupt.as_str() == to || name(question) == Some(to))
    };
    if let Some(other) = applied.iter().find(|question| !fits(question)) {
        found.foreign.add(format!("{}, applied to {}", place(), other.interrupt));
    }
    if applied.len() > 1 {
        found.applied_twice.add(place());
    }
    let is_refused = sent.is_refused && !sent.is_open && sent.acknowledged.is_none();
    found.acknowledged += u64::from(sent.acknowledged.is_some());
    match (sent.acknowledged, applied.is_empty()) {
        (Some(at), true) => match (may_be_unused(facts, sent), facts.may_be_lost(at)) {
            (true, _) => found.overtaken += 1,
            (false, true) => found.lost += 1,
            (false, false) => found.not_applied.add(place()),
        },
        (None, false) if is_refused => found.refused_but_applied.add(place()),
        (None, false) => found.recovered += 1,
        (Some(_), false) | (None, true) => {}
    }
}

/// The name by which a question is answered before it opens.
fn name(question: &Interrupt) -> Option<&str> {
    question.gate.as_deref()
}

/// Whether the run had a gate of this name.
fn is_gate(run: &RunDump, to: &str) -> bool {
    run.events.iter().any(|event| match &event.event {
        Event::InterruptOpened { interrupt } => name(interrupt) == Some(to),
        _ => false,
    })
}

/// Whether an acknowledged answer may have found no use: the run ended with its question open, or
/// it waits for a gate that has not opened. One by the gate's name that was sent before the gate's
/// decision stood in the journal for its owner is kept for the next opening.
fn may_be_unused(facts: &Facts<'_>, sent: &Sent<'_>) -> bool {
    // A run that is gone is counted as lost.
    let Some(run) = facts.runs.get(sent.run) else { return false };
    let mut open = Vec::new();
    let mut was_answered = false;
    let mut decided_ms: Option<i64> = None;
    let mut known_ms = None;
    for event in &run.events {
        if decided_ms.is_some_and(|decided| event.at_ms > decided) {
            known_ms = known_ms.or(Some(event.at_ms));
        }
        match &event.event {
            Event::InterruptOpened { interrupt } => {
                let fits = |to| interrupt.interrupt.as_str() == to || name(interrupt) == Some(to);
                if sent.to.is_none_or(fits) {
                    open.push(&interrupt.interrupt);
                }
            }
            Event::InterruptAnswered { interrupt, .. } => {
                if open.contains(&interrupt) {
                    was_answered = true;
                    decided_ms = Some(event.at_ms);
                }
                open.retain(|id| *id != interrupt);
            }
            _ => {}
        }
    }
    let has_ended = matches!(run.status.as_str(), "failed" | "cancelled");
    // Somebody else's answer was taken although this one was acknowledged.
    if was_answered {
        // The owner's next event shows that the one with the decision had been written.
        let by_name = sent.to.is_some_and(|to| is_gate(run, to));
        return by_name && sent.since_ms.zip(known_ms).is_some_and(|(sent, known)| sent <= known);
    }
    has_ended || open.is_empty()
}

#[cfg(test)]
mod tests;
