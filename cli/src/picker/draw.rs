//! What the picker shows, as lines that fit a terminal.

use holdpoint_graph::printable;
use holdpoint_producer::GateRow;
use serde_json::{Map, Value};

use super::{
    Picker, Stage,
    diff::{self, Line},
    keyed,
};
use crate::{
    choice::Choice,
    paint::Paint,
    show::{asked, name, relative, votes},
    table::{clip, width},
};

/// Where and when a picker is drawn.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame<'a> {
    /// Columns of the terminal.
    pub(crate) columns: usize,
    /// Lines of the terminal.
    pub(crate) lines: usize,
    /// The time, in ms since 1970.
    pub(crate) now_ms: i64,
    /// Who answers.
    pub(crate) by: &'a str,
    /// Its colours.
    pub(crate) paint: Paint,
}

impl Frame<'_> {
    /// A line of text from outside or with the like in it, cut to the width.
    fn fit(&self, text: &str) -> String {
        clip(&printable(text, usize::MAX), self.columns.saturating_sub(1))
    }

    /// A text over as many lines as it needs, at most eight.
    fn wrapped(&self, text: &str) -> Vec<String> {
        let room = self.columns.saturating_sub(1).max(10);
        let mut lines = vec![String::new()];
        for word in printable(text, 2_000).split(' ') {
            let line = lines.last_mut().expect("there is a first line");
            if !line.is_empty() && width(line) + 1 + width(word) > room {
                lines.push(word.to_owned());
            } else {
                line.push_str(if line.is_empty() { "" } else { " " });
                line.push_str(word);
            }
        }
        lines.iter().take(8).map(|line| self.fit(line)).collect()
    }
}

/// The lines of the picker, fewer than the terminal has.
pub(crate) fn draw(picker: &Picker, frame: Frame<'_>) -> Vec<String> {
    let paint = frame.paint;
    let note = picker.note.iter().map(|note| paint.yellow(&frame.fit(note)));
    let Some(row) = picker.row() else { return note.collect() };
    let mut foot: Vec<String> = note.collect();
    let keys = |text: &str| paint.dim(&frame.fit(text));
    let body = match &picker.stage {
        Stage::List => {
            foot.push(keys("↑ ↓ or j k move · Enter opens · q leaves"));
            let room = frame.lines.saturating_sub(foot.len() + 2).max(1);
            list(picker, frame, room)
        }
        Stage::Open { comment } => {
            foot.extend(comment.iter().map(|text| frame.fit(&format!("comment: {text}"))));
            foot.push(choice_line(row, frame));
            let as_whom =
                format!("c comment · j k next, last · Esc list · q leave    as {}", frame.by);
            foot.push(keys(&as_whom));
            question(picker, row, &Map::new(), frame)
        }
        Stage::Comment { waits, text } => {
            let about = waits.as_ref().map_or("", |(word, _)| word);
            foot.push(typing(format!("{about} comment").trim_start(), text, frame));
            foot.push(keys("Enter takes it · Ctrl-U empties it · Esc goes back"));
            question(picker, row, &Map::new(), frame)
        }
        Stage::Values { choice: Choice { word, .. }, text, .. } => {
            foot.push(typing(&format!("{word}, as JSON"), text, frame));
            foot.push(keys("Enter takes it · Ctrl-U empties it · Esc goes back"));
            question(picker, row, &Map::new(), frame)
        }
        Stage::Confirm { set, .. } => {
            foot.push(keys(&format!("Enter sends the edit as {} · Esc goes back", frame.by)));
            question(picker, row, set, frame)
        }
    };
    let room = frame.lines.saturating_sub(foot.len() + 1).max(1);
    let left_out = body.len().saturating_sub(room);
    let mut lines: Vec<String> = body.into_iter().take(room).collect();
    if left_out > 0 {
        lines.pop();
        lines.push(paint.dim(&format!("  … {} lines more", left_out + 1)));
    }
    lines.extend(foot);
    lines
}

/// The questions around the marked one.
fn list(picker: &Picker, frame: Frame<'_>, room: usize) -> Vec<String> {
    let paint = frame.paint;
    let count = match (picker.rows.len(), picker.has_more) {
        (1, false) => "1 open question".to_owned(),
        (count, false) => format!("{count} open questions"),
        (count, true) => format!("the first {count} open questions"),
    };
    let mut lines = vec![paint.bold(&count)];
    let first = picker.at.saturating_sub(room / 2).min(picker.rows.len().saturating_sub(room));
    let shown: Vec<(usize, &GateRow)> =
        picker.rows.iter().enumerate().skip(first).take(room).collect();
    let widest = shown.iter().map(|(_, row)| width(row.run.as_str())).max().unwrap_or(0).min(28);
    for (at, row) in shown {
        let run = clip(row.run.as_str(), widest);
        let space = " ".repeat(widest.saturating_sub(width(&run)));
        let age = relative(row.open.opened_at.0, frame.now_ms);
        let due = row.open.deadline.map(|due| relative(due.0, frame.now_ms)).unwrap_or_default();
        let votes = if row.open.quorum > 1 { votes(&row.open) } else { String::new() };
        let (name, rest) = (name(&row.open), &row.open.question);
        let text = format!("{run}{space}  {age:<9} {due:<7} {votes:<7} {name}: {rest}");
        if at == picker.at {
            lines.push(paint.cyan(&frame.fit(&format!("> {text}"))));
        } else {
            lines.push(frame.fit(&format!("  {text}")));
        }
    }
    lines
}

/// A question with what it is about, and with an edit's changes to that.
fn question(
    picker: &Picker,
    row: &GateRow,
    set: &Map<String, Value>,
    frame: Frame<'_>,
) -> Vec<String> {
    let (paint, open) = (frame.paint, &row.open);
    let place = format!("{} of {}", picker.at + 1, picker.rows.len());
    let head = format!("{place}  {}  {} {}", row.run, row.graph, name(&row.open));
    let mut lines = vec![paint.dim(&frame.fit(&head))];
    lines.extend(frame.wrapped(&open.question).iter().map(|line| paint.bold(line)));
    let mut about = format!("opened {}", relative(open.opened_at.0, frame.now_ms));
    if let Some(deadline) = open.deadline {
        about.push_str(&format!(", answered by itself {}", relative(deadline.0, frame.now_ms)));
    }
    let asked = asked(open);
    if !asked.is_empty() {
        about.push_str(&format!(", asked of {asked}"));
    }
    if let Some(reminder) = open.reminder {
        about.push_str(&format!(", reminds {}", relative(reminder.0, frame.now_ms)));
    }
    lines.push(paint.dim(&frame.fit(&about)));
    if open.quorum > 1 {
        lines.push(frame.fit(&format!("{} votes", votes(open))));
    }
    for vote in &open.votes {
        let comment = vote.comment.as_ref().map_or_else(String::new, |text| format!(": {text}"));
        lines.push(frame.fit(&format!("  {} says {}{comment}", vote.by, vote.answer)));
    }
    let none = Map::new();
    let args = open.args.as_deref().unwrap_or(&none);
    lines.extend(diff::lines(args, set).iter().map(|line| match line {
        Line::Same(text) => frame.fit(&format!("  {text}")),
        Line::Gone(text) => paint.red(&frame.fit(&format!("- {text}"))),
        Line::New(text) => paint.green(&frame.fit(&format!("+ {text}"))),
    }));
    lines
}

fn choice_line(row: &GateRow, frame: Frame<'_>) -> String {
    let shown = keyed(&row.open).into_iter().map(|(key, choice)| format!("{key} {}", choice.word));
    frame.paint.cyan(&frame.fit(&shown.collect::<Vec<_>>().join(" · ")))
}

/// A line that is being typed; of a long one its end.
fn typing(name: &str, text: &str, frame: Frame<'_>) -> String {
    let text = printable(text, usize::MAX);
    let room = frame.columns.saturating_sub(width(name) + 5).max(10);
    let skip = text.chars().count().saturating_sub(room);
    let end: String = text.chars().skip(skip).collect();
    frame.fit(&format!("{name}: {end}▏"))
}
