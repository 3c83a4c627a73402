//! Interrupts: the open questions of a run, as they are stored and shown.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use super::{Question, approval_schema};
use crate::{InterruptId, State, TaskRef};

/// What an interrupt is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InterruptKind {
    /// A gate before a node.
    Gate,
    /// A node's own question.
    Ask,
    /// An unsafe effect whose outcome nobody knows.
    Uncertain,
    /// A run that waited longer than its plan is good for.
    Stale,
    /// A budget that is used up.
    Budget,
}

impl InterruptKind {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Gate => "gate",
            Self::Ask => "ask",
            Self::Uncertain => "uncertain",
            Self::Stale => "stale",
            Self::Budget => "budget",
        }
    }
}

/// An open question of a run, as it is stored and shown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Interrupt {
    /// The id of this opening.
    pub interrupt: InterruptId,
    /// The task that waits for it; none when the whole run does.
    pub task: Option<TaskRef>,
    /// The gate's name, for gates.
    pub gate: Option<String>,
    /// The ask's key, for asks.
    pub key: Option<String>,
    /// What it is about.
    pub kind: InterruptKind,
    /// The question as shown.
    pub question: String,
    /// The JSON Schema of an answer.
    pub schema: Option<Value>,
    /// The answers that have a meaning of their own.
    pub allowed: Vec<String>,
    /// When it opened, in ms since 1970.
    pub opened_at_ms: i64,
    /// When it is answered by itself, in ms since 1970.
    pub deadline_ms: Option<i64>,
    /// The answer at the deadline; null is one.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    pub default_answer: Option<Value>,
    /// Who is asked.
    pub assignees: Vec<String>,
    /// The hash of what the decision is about.
    pub args_hash: String,
}

/// A value that is there, whatever it is: null too.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Interrupt {
    pub(crate) fn of_question(id: InterruptId, question: &Question, shown: &State) -> Self {
        let text = question.shown(shown);
        let allowed = match &question.schema {
            Some(schema) if *schema == approval_schema() => vec!["approve", "reject"],
            Some(_) | None => vec![],
        };
        Self {
            interrupt: id,
            task: None,
            gate: None,
            key: None,
            kind: InterruptKind::Ask,
            schema: question.schema.clone(),
            allowed: allowed.into_iter().map(str::to_owned).collect(),
            opened_at_ms: 0,
            deadline_ms: question
                .deadline
                .map(|after| i64::try_from(after.as_millis()).unwrap_or(i64::MAX)),
            default_answer: question.default_answer.clone(),
            assignees: question.assignees.clone(),
            args_hash: args_hash(&text, shown),
            question: text,
        }
    }

    /// Sets the times; the deadline is counted from the opening.
    pub(crate) fn opened_at(mut self, now_ms: i64) -> Self {
        self.opened_at_ms = now_ms;
        self.deadline_ms = self.deadline_ms.map(|after| now_ms.saturating_add(after));
        self
    }

    pub(crate) fn uncertain(id: InterruptId, node: &str, why: &str) -> Self {
        let question = Question::new(format!(
            "The unsafe effect {node} began and its outcome is unknown, since {why}. Look outside, \
             then answer: \"retry\" runs it again, {{\"result\": value}} takes the value as its \
             update, \"skip\" goes on without one, \"fail\" ends the run."
        ))
        .schema(uncertain_schema());
        Self {
            kind: InterruptKind::Uncertain,
            allowed: ["retry", "result", "skip", "fail"].map(str::to_owned).to_vec(),
            ..Self::of_question(id, &question, &State::new())
        }
    }

    pub(crate) fn stale(id: InterruptId, idle_ms: i64) -> Self {
        let hours = idle_ms / 3_600_000;
        let question = Question::new(format!(
            "The run has not moved for {hours} h. Is its plan still good? \"resume\" or \"cancel\"."
        ))
        .schema(json!({ "enum": ["resume", "cancel"] }));
        Self {
            kind: InterruptKind::Stale,
            allowed: ["resume", "cancel"].map(str::to_owned).to_vec(),
            ..Self::of_question(id, &question, &State::new())
        }
    }
}

/// The hash of what a decision is about: the question as shown and the state behind it.
fn args_hash(question: &str, state: &State) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&(question.len() as u64).to_le_bytes());
    hasher.update(question.as_bytes());
    hasher.update(&serde_json::to_vec(state).expect("a state always has a text"));
    crate::fingerprint::short(&hasher.finalize())
}

/// The answers to an `uncertain` interrupt.
fn uncertain_schema() -> Value {
    json!({ "oneOf": [
        { "enum": ["retry", "skip", "fail"] },
        { "type": "object", "properties": { "result": {} }, "required": ["result"],
          "additionalProperties": false },
    ] })
}
