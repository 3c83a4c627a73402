//! The answers among which a person chooses, for commands to copy and for keys to press.

use holdpoint_graph::InterruptKind;
use holdpoint_producer::InterruptView;
use serde_json::{Map, Value, json};

/// One of the answers that a question takes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Choice {
    /// Its word.
    pub(crate) word: String,
    /// What it says.
    pub(crate) form: Form,
    /// Whether it needs a comment.
    pub(crate) has_comment: bool,
}

/// What a choice says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Form {
    /// Always this.
    Fixed(Value),
    /// Values for these keys, as they are now.
    Edit(Map<String, Value>),
    /// A value for this field: the outcome of an effect, as somebody found it outside, or by how
    /// much a budget is raised.
    Field(&'static str),
    /// Any JSON that fits the question.
    Any,
}

impl Form {
    /// The answer for what was typed.
    pub(crate) fn answer(&self, typed: Value) -> Value {
        match self {
            Self::Fixed(value) => value.clone(),
            Self::Edit(_) => json!({ "choice": "edit", "set": typed }),
            Self::Field(name) => json!({ *name: typed }),
            Self::Any => typed,
        }
    }
}

/// The answers that a question takes; one of any form when it names none.
pub(crate) fn choices(open: &InterruptView) -> Vec<Choice> {
    let choice = |word: &str, form| Choice {
        word: word.to_owned(),
        form,
        has_comment: open.comment_on.iter().any(|with| with == word),
    };
    if !open.allowed.is_empty() {
        return open.allowed.iter().map(|word| choice(word, form(word, open))).collect();
    }
    let words = open.schema.as_ref().and_then(|schema| schema.get("enum")?.as_array());
    match words {
        Some(words) => {
            let word = |value: &Value| match value.as_str() {
                Some(text) => text.to_owned(),
                None => value.to_string(),
            };
            words.iter().map(|value| choice(&word(value), Form::Fixed(value.clone()))).collect()
        }
        None => vec![choice("answer", Form::Any)],
    }
}

fn form(word: &str, open: &InterruptView) -> Form {
    match open.kind {
        InterruptKind::Uncertain if word == "result" => Form::Field("result"),
        InterruptKind::Budget if word == "raise_by" => Form::Field("raise_by"),
        InterruptKind::Uncertain | InterruptKind::Stale | InterruptKind::Budget => {
            Form::Fixed(word.into())
        }
        InterruptKind::Gate | InterruptKind::Ask => match word {
            "approve" => Form::Fixed(json!({ "approve": true })),
            "reject" => Form::Fixed(json!({ "approve": false })),
            "edit" if !open.editable.is_empty() => Form::Edit(editable(open)),
            word => Form::Fixed(json!({ "choice": word })),
        },
    }
}

/// The keys that an answer may change with the values that are shown; null for one that is not.
fn editable(open: &InterruptView) -> Map<String, Value> {
    let value = |key: &String| open.args.as_ref().and_then(|args| args.get(key)).cloned();
    open.editable.iter().map(|key| (key.clone(), value(key).unwrap_or_default())).collect()
}
