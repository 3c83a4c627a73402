//! Runs as people read them. What came from outside is escaped and clipped.

use holdpoint_graph::printable;
use holdpoint_producer::{
    Attempt, EventView, InterruptView, PartialView, PositionView, ReasonView, RunView, Timestamp,
};
use holdpoint_storage::{Clock, SystemClock};
use serde_json::{Map, Value};

use crate::{
    choice::{Choice, Form, choices},
    context::{Context, quoted},
    paint::Paint,
    table::Table,
};

/// Lines of a state that a card shows.
const STATE_LINES_MAX: usize = 40;
/// Characters of a value within a line.
const VALUE_CHARS_MAX: usize = 100;

/// How long ago a time was, or how far ahead it is.
pub(crate) fn ago(time: Timestamp) -> String {
    relative(time.0, SystemClock.wall_ms())
}

/// The same, seen from `now_ms`.
pub(crate) fn relative(at_ms: i64, now_ms: i64) -> String {
    let (passed, is_past) = (now_ms.abs_diff(at_ms) / 1_000, at_ms <= now_ms);
    let text = match passed {
        0..=119 => format!("{passed}s"),
        120..=7_199 => format!("{}m", passed / 60),
        7_200..=172_799 => format!("{}h", passed / 3_600),
        _ => format!("{}d", passed / 86_400),
    };
    if is_past { format!("{text} ago") } else { format!("in {text}") }
}

/// The card of `runs show`.
pub(crate) fn card(view: &RunView, context: &Context) -> String {
    let paint = context.out.paint;
    let mut text = head(view, paint);
    if let Some(reason) = &view.reason {
        text.push_str(&format!("  {}\n", paint.red(&because(reason))));
    }
    if !view.position.is_empty() {
        text.push_str(&format!("\n{}\n", paint.bold("position")));
        for place in &view.position {
            text.push_str(&format!("  {}\n", place_line(place, paint)));
        }
    }
    if !view.interrupts.is_empty() {
        text.push_str(&format!("\n{}\n", paint.bold("questions")));
        for open in &view.interrupts {
            text.push_str(&question(view.run.as_str(), open, context));
        }
    }
    text.push_str(&state(view, context));
    text.push_str(&attempts(&view.attempts, paint));
    text
}

fn head(view: &RunView, paint: Paint) -> String {
    let status = if view.is_cancelling {
        paint.yellow("cancelling")
    } else {
        paint.status(view.status.as_str())
    };
    let when = view.finished_at.unwrap_or(view.updated_at);
    let mut text = format!("{}  {status} {}\n", paint.bold(view.run.as_str()), ago(when));
    let mut line = |name: &str, value: String| {
        text.push_str(&format!("  {} {value}\n", paint.dim(&format!("{name:<9}"))));
    };
    let version = view.fingerprint.as_ref().map_or_else(String::new, |f| format!(" {f}"));
    line("graph", format!("{}{}", view.graph, paint.dim(&version)));
    if view.session != view.run.as_str() {
        line("session", view.session.clone());
    }
    line("queue", format!("{}, priority {}", view.queue, view.priority));
    if !view.tags.is_empty() {
        let tags = view.tags.iter().map(|(tag, value)| format!("{tag}={value}"));
        line("tags", printable(&tags.collect::<Vec<_>>().join(" "), 400));
    }
    if let Some(origin) = &view.origin {
        let what = if origin.is_replay { "replay" } else { "fork" };
        line(what, format!("of {} after event {}", origin.run, origin.seq));
    }
    line("created", format!("{} ({})", view.created_at, ago(view.created_at)));
    if let Some(due) = view.due_at {
        line("due", format!("{due} ({})", ago(due)));
    }
    if let (Some(begin), Some(end)) = (view.started_at, view.finished_at) {
        line("took", format!("{} ms", end.0.saturating_sub(begin.0)));
    }
    let counters = view.counters;
    let mut counts = format!("{} steps", counters.steps);
    if counters.node_errors > 0 {
        counts.push_str(&format!(", {} node errors", counters.node_errors));
    }
    if counters.lost_workers > 0 {
        counts.push_str(&format!(", {} lost workers", counters.lost_workers));
    }
    line("counters", counts);
    text
}

fn because(reason: &ReasonView) -> String {
    let at = reason.node.as_ref().map_or_else(String::new, |node| format!(" at {node}"));
    let message = reason.message.as_ref().map_or_else(String::new, |text| format!(": {text}"));
    printable(&format!("{}{at}{message}", reason.code.as_str()), 1_000)
}

fn place_line(place: &PositionView, paint: Paint) -> String {
    let word = word_of(&place.status);
    let visit = if place.visit > 1 { format!(" (visit {})", place.visit) } else { String::new() };
    let branch = if place.branch.is_empty() {
        String::new()
    } else {
        let branch: Vec<String> = place.branch.iter().map(ToString::to_string).collect();
        paint.dim(&format!("  branch {}", branch.join(".")))
    };
    format!("{}{visit}  {word}{branch}", printable(&place.node, 120))
}

/// The word of a status, as it stands in the JSON.
fn word_of(status: &impl serde::Serialize) -> String {
    match serde_json::to_value(status) {
        Ok(Value::String(word)) => word,
        Ok(_) | Err(_) => String::new(),
    }
}

/// A position on one line.
pub(crate) fn position(places: &[PositionView]) -> String {
    let shown = places.iter().map(|place| format!("{}:{}", place.node, word_of(&place.status)));
    printable(&shown.collect::<Vec<_>>().join(" "), VALUE_CHARS_MAX)
}

/// A question and the commands that answer it.
pub(crate) fn question(run: &str, open: &InterruptView, context: &Context) -> String {
    let paint = context.out.paint;
    let mut text = format!(
        "  {} {}: {}\n",
        paint.yellow("?"),
        printable(name(open), 120),
        paint.bold(&printable(&open.question, 500)),
    );
    let mut about = format!("{}, opened {}", open.kind.as_str(), ago(open.opened_at));
    if let Some(deadline) = open.deadline {
        about.push_str(&format!(", answered by itself {}", ago(deadline)));
    }
    let asked = asked(open);
    if !asked.is_empty() {
        about.push_str(&format!(", asked of {}", printable(&asked, 200)));
    }
    if let Some(reminder) = open.reminder {
        about.push_str(&format!(", reminds {}", ago(reminder)));
    }
    for line in std::iter::once(about).chain(needs(open)).chain(args(open)) {
        text.push_str(&format!("    {}\n", paint.dim(&line)));
    }
    for command in answers(run, open) {
        text.push_str(&format!("    {}\n", context.command(&command)));
    }
    text
}

/// What a question is called: its gate, or its node.
pub(crate) fn name(open: &InterruptView) -> &str {
    open.gate.as_deref().or(open.node.as_deref()).unwrap_or("the run")
}

/// Who is asked: people, then groups.
pub(crate) fn asked(open: &InterruptView) -> String {
    let asked: Vec<&str> = open.assignees.iter().chain(&open.groups).map(String::as_str).collect();
    asked.join(", ")
}

/// How many of the votes that are needed say the same: `1 of 2`.
pub(crate) fn votes(open: &InterruptView) -> String {
    let says = |answer: &Value| match answer.get("approve").or_else(|| answer.get("choice")) {
        Some(word) if answer.get("set").is_none() => word.clone(),
        Some(_) | None => answer.clone(),
    };
    let votes: Vec<Value> = open.votes.iter().map(|vote| says(&vote.answer)).collect();
    let same = |said: &Value| votes.iter().filter(|other| *other == said).count();
    format!("{} of {}", votes.iter().map(same).max().unwrap_or(0), open.quorum)
}

/// What a question with several votes still needs.
fn needs(open: &InterruptView) -> Option<String> {
    let given = open.votes.iter().map(|vote| format!("{} by {}", vote.answer, vote.by));
    let given: Vec<String> = given.collect();
    let so_far = if given.is_empty() { "no votes yet".to_owned() } else { given.join(", ") };
    let needs = format!("{} people must say the same: ", open.quorum);
    (open.quorum > 1).then(|| needs + &printable(&so_far, 300))
}

/// What a question says it is about.
fn args(open: &InterruptView) -> Option<String> {
    let pairs = open.args.as_ref()?.iter().map(|(key, value)| format!("{key}={value}"));
    let pairs: Vec<String> = pairs.collect();
    (!pairs.is_empty()).then(|| printable(&format!("about {}", pairs.join(" ")), 1_000))
}

/// The commands that answer a question, without the program's name. Words in capitals are for
/// whoever answers to fill in.
pub(crate) fn answers(run: &str, open: &InterruptView) -> Vec<String> {
    let mut target = format!("{} --interrupt {}", quoted(run), open.interrupt);
    if open.quorum > 1 || !open.groups.is_empty() {
        target.push_str(" --by WHO");
    }
    if let Some(group) = open.groups.first() {
        target.push_str(&format!(" --group {}", quoted(group)));
    }
    let command = |choice: Choice| {
        let signal = |answer: &str| format!("signal {target} --answer {}", quoted(answer));
        let command = match (choice.word.as_str(), &choice.form) {
            ("approve" | "reject", Form::Fixed(_)) => format!("{} {target}", choice.word),
            (_, Form::Fixed(answer)) => signal(&answer.to_string()),
            (_, Form::Edit(set)) => signal(&edit(set)),
            (_, Form::Field(name)) => signal(&format!(r#"{{"{name}":VALUE}}"#)),
            (_, Form::Any) => format!("signal {target} --answer JSON"),
        };
        let comment = if choice.has_comment { " --comment WHY" } else { "" };
        format!("{command}{comment}")
    };
    choices(open).into_iter().map(command).collect()
}

/// The answer that edits these keys. `VALUE` is no JSON, so that a command nobody has filled in
/// changes nothing.
fn edit(set: &Map<String, Value>) -> String {
    let set: Vec<String> =
        set.keys().map(|key| format!("{}:VALUE", Value::from(key.as_str()))).collect();
    format!(r#"{{"choice":"edit","set":{{{}}}}}"#, set.join(","))
}

fn state(view: &RunView, context: &Context) -> String {
    let paint = context.out.paint;
    if view.state.is_empty() {
        return String::new();
    }
    let pretty = serde_json::to_string_pretty(&view.state).unwrap_or_default();
    let mut text = format!("\n{}\n", paint.bold("state"));
    let lines: Vec<&str> = pretty.lines().collect();
    for line in lines.iter().take(STATE_LINES_MAX) {
        text.push_str(&format!("  {}\n", printable(line, 160)));
    }
    if lines.len() > STATE_LINES_MAX {
        let command = context.command(&format!("runs state {}", quoted(view.run.as_str())));
        let more = format!("… {} lines more: {command}", lines.len() - STATE_LINES_MAX);
        text.push_str(&format!("  {}\n", paint.dim(&more)));
    }
    text
}

fn attempts(attempts: &[Attempt], paint: Paint) -> String {
    let mut table = Table::new(["  WORKER", "CLAIMED", "END"]);
    for attempt in attempts {
        let end = printable(&attempt.end.to_string(), 100);
        table.row([format!("  {}", attempt.worker), ago(attempt.started_at), end]);
    }
    let text = table.text(paint);
    if text.is_empty() { text } else { format!("\n{}\n{text}", paint.bold("attempts")) }
}

/// An event on one line.
pub(crate) fn event_line(event: &EventView, paint: Paint) -> String {
    let time = Timestamp(event.at_ms).to_string();
    let clock = time.get(11..23).unwrap_or(&time);
    let kind = event.event.type_name();
    let painted = match kind {
        "run_completed" => paint.green(kind),
        "run_failed" | "node_failed" | "worker_lost" => paint.red(kind),
        "interrupt_opened" | "run_parked" => paint.yellow(kind),
        "node_completed" | "branch_joined" | "interrupt_answered" => paint.cyan(kind),
        _ => paint.dim(kind),
    };
    let space = " ".repeat(19_usize.saturating_sub(kind.len()));
    let seq = format!("{:>4}", event.seq);
    format!("{}  {}  {painted}{space}{}", paint.dim(&seq), paint.dim(clock), about(event))
}

/// What an event is about, from its own JSON, so that the two can never disagree.
fn about(event: &EventView) -> String {
    let Ok(Value::Object(fields)) = serde_json::to_value(event) else { return String::new() };
    let text = |name: &str| fields.get(name).and_then(Value::as_str).map(str::to_owned);
    let mut parts: Vec<String> = Vec::new();
    parts.extend(text("node"));
    parts.extend(text("gate").map(|gate| format!("gate {gate}")));
    parts.extend(text("step").or_else(|| text("key")).map(|key| format!("step {key}")));
    parts.extend(text("question"));
    if let Some(answer) = fields.get("answer") {
        parts.push(format!("{answer} by {}", text("decided_by").unwrap_or_default()));
    }
    if let Some(error) = fields.get("error").and_then(|error| error.get("message")) {
        parts.push(error.as_str().unwrap_or_default().to_owned());
    }
    if let Some(reason) = fields.get("reason").and_then(Value::as_object) {
        parts.extend(reason.values().filter_map(Value::as_str).map(str::to_owned));
    }
    parts.extend(text("evidence"));
    if event.event.type_name() == "claimed" {
        parts.extend(text("worker"));
    }
    if let Some(patches) = fields.get("patches").and_then(Value::as_array) {
        let keys = patches.iter().filter_map(|patch| patch.get("key")?.as_str());
        let keys: Vec<&str> = keys.collect();
        parts.extend((!keys.is_empty()).then(|| format!("wrote {}", keys.join(", "))));
    }
    printable(&parts.join("  "), 2 * VALUE_CHARS_MAX)
}

/// A partial result on one line.
pub(crate) fn partial_line(partial: &PartialView, paint: Paint) -> String {
    format!("      {}", paint.dim(&printable(&partial.body.to_string(), 2 * VALUE_CHARS_MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_told_from_now() {
        let now = 1_000_000_000;
        let cases = [
            (now, "0s ago"),
            (now - 119_000, "119s ago"),
            (now - 180_000, "3m ago"),
            (now + 7_200_000, "in 2h"),
            (now - 400 * 86_400_000_i64, "400d ago"),
        ];
        for (at, expect) in cases {
            assert_eq!(relative(at, now), expect);
        }
    }
}
