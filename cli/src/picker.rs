//! The picker: going through open questions with single keys.
//!
//! Pure: keys go in, what to do comes out. `commands/pick.rs` reads the keys, draws what [`draw`]
//! makes and sends the answers.

pub(crate) mod diff;
pub(crate) mod draw;
pub(crate) mod keys;

use holdpoint_graph::{json, limits};
use holdpoint_producer::{GateRow, InterruptView};
use serde_json::{Map, Value};

use crate::choice::{Choice, Form, choices};

/// A key that somebody pressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Key {
    /// A letter, or any other sign.
    Char(char),
    /// The arrow up.
    Up,
    /// The arrow down.
    Down,
    /// Enter.
    Enter,
    /// Escape alone.
    Escape,
    /// Backspace.
    Backspace,
    /// Ctrl-U: the whole text away.
    Clear,
    /// Ctrl-C, Ctrl-D, or the end of the terminal.
    Interrupt,
}

/// What a key asks for.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Action {
    /// Show the picker as it is now.
    Draw,
    /// Send this answer, then call [`Picker::told`].
    Send(Box<Reply>),
    /// The end.
    Leave,
}

/// An answer to the question that is shown, bound to what was shown.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reply {
    /// The question as it was shown.
    pub(crate) row: GateRow,
    /// The word of the choice.
    pub(crate) word: String,
    /// The answer.
    pub(crate) answer: Value,
    /// A comment.
    pub(crate) comment: Option<String>,
}

/// What became of an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Told {
    /// It was taken.
    Taken,
    /// It was refused, for this reason; the question may be answered otherwise.
    Refused(String),
    /// It was refused, since the question takes no answer from this person any more.
    Over(String),
}

/// The questions, which of them is looked at, and how far an answer to it has come.
#[derive(Debug)]
pub(crate) struct Picker {
    rows: Vec<GateRow>,
    at: usize,
    has_more: bool,
    /// Questions that are over for this person, as they were shown. They stay in the list until a
    /// worker has taken the answer.
    over: Vec<GateRow>,
    note: Option<String>,
    stage: Stage,
}

#[derive(Debug, Clone, PartialEq)]
enum Stage {
    /// All questions, one of them marked.
    List,
    /// One question, and a comment for whatever is chosen.
    Open { comment: Option<String> },
    /// Somebody types a comment; an answer may wait for it.
    Comment { waits: Option<(String, Value)>, text: String },
    /// Somebody types the values of a choice as JSON.
    Values { choice: Choice, comment: Option<String>, text: String },
    /// An edit is shown beside what it changes.
    Confirm { choice: Choice, comment: Option<String>, set: Map<String, Value> },
}

/// Keys that are no choices.
const RESERVED: [char; 4] = ['c', 'j', 'k', 'q'];

/// The choices of a question with the keys for them: the first free letter of each word.
fn keyed(open: &InterruptView) -> Vec<(char, Choice)> {
    let mut taken = RESERVED.to_vec();
    let mut key = |word: &str| {
        let letters = word.chars().filter(char::is_ascii_alphanumeric);
        let letters = letters.map(|letter| letter.to_ascii_lowercase());
        let free = letters.chain('1'..='9').chain('a'..='z').find(|key| !taken.contains(key));
        taken.extend(free);
        free
    };
    choices(open).into_iter().filter_map(|choice| Some((key(&choice.word)?, choice))).collect()
}

impl Picker {
    /// Shows a list of questions; `has_more` when it is only the first part of it.
    pub(crate) fn new(rows: Vec<GateRow>, has_more: bool) -> Self {
        Self { rows, at: 0, has_more, over: Vec::new(), note: None, stage: Stage::List }
    }

    /// Whether no question is left.
    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    fn row(&self) -> Option<&GateRow> {
        self.rows.get(self.at)
    }

    /// Takes one key.
    pub(crate) fn press(&mut self, key: Key) -> Action {
        self.note = None;
        let Some(row) = self.row().cloned().filter(|_| key != Key::Interrupt) else {
            return Action::Leave;
        };
        let (stage, action) = match self.stage.clone() {
            Stage::List => self.in_list(key),
            Stage::Open { comment } => self.in_question(&row, comment, key),
            Stage::Comment { waits, text } => self.in_comment(&row, waits, text, key),
            Stage::Values { choice, comment, text } => {
                self.in_values(&row, choice, comment, (text, key))
            }
            Stage::Confirm { choice, comment, set } => {
                in_confirm(&row, choice, comment, (set, key))
            }
        };
        self.stage = stage;
        action
    }

    /// Takes what became of the answer that was sent, and the questions that are open now. One
    /// that is over gives way to the next; one whose answer was refused stays, as it is now.
    pub(crate) fn told(&mut self, told: Told, rows: Vec<GateRow>, has_more: bool) {
        let before = self.row().cloned();
        self.note = match told {
            Told::Taken => None,
            Told::Refused(ref why) | Told::Over(ref why) => Some(why.clone()),
        };
        match told {
            Told::Taken | Told::Over(_) => self.over.extend(before.clone()),
            Told::Refused(_) => {}
        }
        let is_same = |one: &GateRow, other: &GateRow| {
            one.run == other.run && one.open.interrupt == other.open.interrupt
        };
        let is_over = |row: &GateRow| {
            let mut over = self.over.iter();
            over.any(|over| is_same(over, row) && over.open.args_hash == row.open.args_hash)
        };
        let rows: Vec<GateRow> = rows.into_iter().filter(|row| !is_over(row)).collect();
        let stays = rows.iter().position(|row| before.as_ref().is_some_and(|b| is_same(b, row)));
        let next = stays.unwrap_or(self.at);
        (self.rows, self.has_more) = (rows, has_more);
        let is_there = next < self.rows.len();
        self.at = if is_there { next } else { self.rows.len().saturating_sub(1) };
        self.stage = if is_there { Stage::Open { comment: None } } else { Stage::List };
    }

    fn step(&mut self, key: Key) -> bool {
        let last = self.rows.len().saturating_sub(1);
        match key {
            Key::Up | Key::Char('k') => self.at = self.at.saturating_sub(1),
            Key::Down | Key::Char('j') => self.at = (self.at + 1).min(last),
            Key::Char(_)
            | Key::Enter
            | Key::Escape
            | Key::Backspace
            | Key::Clear
            | Key::Interrupt => return false,
        }
        true
    }

    fn in_list(&mut self, key: Key) -> (Stage, Action) {
        if self.step(key) {
            return (Stage::List, Action::Draw);
        }
        match key {
            Key::Enter => (Stage::Open { comment: None }, Action::Draw),
            Key::Escape | Key::Char('q') => (Stage::List, Action::Leave),
            _ => (Stage::List, Action::Draw),
        }
    }

    fn in_question(&mut self, row: &GateRow, comment: Option<String>, key: Key) -> (Stage, Action) {
        if self.step(key) {
            return (Stage::Open { comment: None }, Action::Draw);
        }
        let letter = match key {
            Key::Escape => return (Stage::List, Action::Draw),
            Key::Char('q') => return (Stage::Open { comment }, Action::Leave),
            Key::Char('c') => {
                let text = comment.unwrap_or_default();
                return (Stage::Comment { waits: None, text }, Action::Draw);
            }
            Key::Char(letter) => letter,
            _ => return (Stage::Open { comment }, Action::Draw),
        };
        let chosen = keyed(&row.open).into_iter().find(|(key, _)| *key == letter);
        let Some((_, choice)) = chosen else {
            self.note = Some(format!("{letter} is no choice of this question"));
            return (Stage::Open { comment }, Action::Draw);
        };
        match &choice.form {
            Form::Fixed(answer) => {
                let answer = answer.clone();
                given(row, choice, comment, answer)
            }
            Form::Edit(set) => {
                let text = Value::Object(set.clone()).to_string();
                (Stage::Values { choice, comment, text }, Action::Draw)
            }
            Form::Field(_) | Form::Any => {
                (Stage::Values { choice, comment, text: String::new() }, Action::Draw)
            }
        }
    }

    fn in_comment(
        &mut self,
        row: &GateRow,
        waits: Option<(String, Value)>,
        text: String,
        key: Key,
    ) -> (Stage, Action) {
        let text = match typed(text, key, limits::COMMENT_BYTES_MAX) {
            Typed::More(text) => return (Stage::Comment { waits, text }, Action::Draw),
            Typed::Back => return (Stage::Open { comment: None }, Action::Draw),
            Typed::Done(text) => text,
        };
        let comment = Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        match (waits, comment) {
            (None, comment) => (Stage::Open { comment }, Action::Draw),
            (Some((word, answer)), None) => {
                self.note = Some(format!("{word} needs a comment"));
                (Stage::Comment { waits: Some((word, answer)), text: String::new() }, Action::Draw)
            }
            (Some((word, answer)), comment) => sent(row, word, comment, answer),
        }
    }

    fn in_values(
        &mut self,
        row: &GateRow,
        choice: Choice,
        comment: Option<String>,
        (text, key): (String, Key),
    ) -> (Stage, Action) {
        let text = match typed(text, key, limits::ANSWER_BYTES_MAX) {
            Typed::More(text) => return (Stage::Values { choice, comment, text }, Action::Draw),
            Typed::Back => return (Stage::Open { comment }, Action::Draw),
            Typed::Done(text) => text,
        };
        let value = match json::parse(text.as_bytes(), limits::ANSWER_BYTES_MAX) {
            Ok(value) => value,
            Err(refusal) => {
                self.note = Some(format!("this is no JSON value: {refusal}"));
                return (Stage::Values { choice, comment, text }, Action::Draw);
            }
        };
        let Form::Edit(now) = &choice.form else {
            let answer = choice.form.answer(value);
            return given(row, choice, comment, answer);
        };
        let set = value.as_object().cloned().unwrap_or_default();
        let is_new = |(key, value): &(String, Value)| now.get(key) != Some(value);
        let set: Map<String, Value> = set.into_iter().filter(is_new).collect();
        if set.is_empty() {
            self.note = Some("an edit is an object with at least one changed value".to_owned());
            return (Stage::Values { choice, comment, text }, Action::Draw);
        }
        (Stage::Confirm { choice, comment, set }, Action::Draw)
    }
}

fn in_confirm(
    row: &GateRow,
    choice: Choice,
    comment: Option<String>,
    (set, key): (Map<String, Value>, Key),
) -> (Stage, Action) {
    match key {
        Key::Enter => {
            let answer = choice.form.answer(set.into());
            given(row, choice, comment, answer)
        }
        Key::Escape => {
            let text = Value::Object(set).to_string();
            (Stage::Values { choice, comment, text }, Action::Draw)
        }
        _ => (Stage::Confirm { choice, comment, set }, Action::Draw),
    }
}

/// Sends an answer, or asks first for the comment that it needs.
fn given(row: &GateRow, choice: Choice, comment: Option<String>, answer: Value) -> (Stage, Action) {
    if choice.has_comment && comment.is_none() {
        let waits = Some((choice.word, answer));
        return (Stage::Comment { waits, text: String::new() }, Action::Draw);
    }
    sent(row, choice.word, comment, answer)
}

fn sent(row: &GateRow, word: String, comment: Option<String>, answer: Value) -> (Stage, Action) {
    let reply = Reply { row: row.clone(), word, answer, comment: comment.clone() };
    (Stage::Open { comment }, Action::Send(Box::new(reply)))
}

/// A line of text after one more key.
enum Typed {
    More(String),
    Done(String),
    Back,
}

fn typed(mut text: String, key: Key, bytes_max: usize) -> Typed {
    match key {
        Key::Char(sign) if text.len() + sign.len_utf8() <= bytes_max => text.push(sign),
        Key::Backspace => drop(text.pop()),
        Key::Clear => text.clear(),
        Key::Enter => return Typed::Done(text),
        Key::Escape => return Typed::Back,
        Key::Char(_) | Key::Up | Key::Down | Key::Interrupt => {}
    }
    Typed::More(text)
}

#[cfg(test)]
mod tests;
