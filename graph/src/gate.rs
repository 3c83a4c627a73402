//! Questions to people: gates before a node, and a node's own asks.
//!
//! A declaration is data as far as it can be, so that it can be shown, hashed and compared. The
//! engine turns it into an [`Interrupt`] when the run reaches it.

use std::{fmt, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::{Value, json};

use crate::{Code, InterruptId, Refusal, State, TaskRef, printable};

/// What is asked of a person, and what counts as an answer.
///
/// The text may name keys of the state in braces: `"Charge {amount} to {customer}?"`.
#[derive(Clone, Default)]
pub struct Question {
    text: Text,
    schema: Option<Value>,
    assignees: Vec<String>,
    deadline: Option<Duration>,
    default_answer: Option<Value>,
}

#[derive(Clone)]
enum Text {
    Template(String),
    Made(Arc<dyn Fn(&State) -> String + Send + Sync>),
}

impl Default for Text {
    fn default() -> Self {
        Self::Template(String::new())
    }
}

impl Question {
    /// A question; `{key}` stands for the state's value of that key.
    pub fn new(template: impl Into<String>) -> Self {
        Self { text: Text::Template(template.into()), ..Self::default() }
    }

    /// A question whose text is computed from the state when it opens.
    pub fn made(text: impl Fn(&State) -> String + Send + Sync + 'static) -> Self {
        Self { text: Text::Made(Arc::new(text)), ..Self::default() }
    }

    /// The JSON Schema that an answer must satisfy; without one any JSON value is an answer.
    #[must_use]
    pub fn schema(mut self, schema: Value) -> Self {
        self.schema = Some(schema);
        self
    }

    /// Who is asked.
    #[must_use]
    pub fn assignee(mut self, name: impl Into<String>) -> Self {
        self.assignees.push(name.into());
        self
    }

    /// The question is answered with `answer` when nobody did for so long.
    #[must_use]
    pub fn deadline(mut self, after: Duration, answer: impl Into<Value>) -> Self {
        self.deadline = Some(after);
        self.default_answer = Some(answer.into());
        self
    }

    /// The text as it is shown when the question opens.
    #[must_use]
    pub fn shown(&self, state: &State) -> String {
        match &self.text {
            Text::Template(template) => fill(template, state),
            Text::Made(text) => text(state),
        }
    }

    /// The template, or nothing when the text is computed.
    #[must_use]
    pub fn template(&self) -> Option<&str> {
        match &self.text {
            Text::Template(template) => Some(template),
            Text::Made(_) => None,
        }
    }

    /// The answer at the deadline.
    #[must_use]
    pub const fn default_answer(&self) -> Option<&Value> {
        self.default_answer.as_ref()
    }

    /// The schema of the answer.
    #[must_use]
    pub const fn answer_schema(&self) -> Option<&Value> {
        self.schema.as_ref()
    }
}

impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question")
            .field("template", &self.template())
            .field("schema", &self.schema)
            .field("assignees", &self.assignees)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

/// Puts the state's values in place of `{key}`; text in braces that is no key stays.
fn fill(template: &str, state: &State) -> String {
    let mut out = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let found = after.split_once('}').and_then(|(key, tail)| Some((state.get(key)?, tail)));
        match found {
            Some((Value::String(text), tail)) => {
                out.push_str(text);
                rest = tail;
            }
            Some((value, tail)) => {
                out.push_str(&value.to_string());
                rest = tail;
            }
            None => {
                out.push('{');
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

/// A question that must be answered before a node starts.
#[derive(Debug, Clone)]
pub struct Gate {
    pub(crate) name: String,
    pub(crate) question: Question,
    pub(crate) reject_to: Option<String>,
}

impl Gate {
    /// A gate that asks `question`; it is answered by `{"approve": true}` or `{"approve": false}`.
    pub fn new(name: impl Into<String>, question: Question) -> Self {
        let question = match question.schema {
            Some(_) => question,
            None => question.schema(approval_schema()),
        };
        Self { name: name.into(), question, reject_to: None }
    }

    /// A gate that takes any JSON value for an answer and leaves its meaning to the node.
    pub fn open(name: impl Into<String>) -> Self {
        let name = name.into();
        let question = Question::new(format!("Go on at {name}?"));
        Self { name, question, reject_to: None }
    }

    /// Where the run goes on when the answer is `{"approve": false}`; the gated node does not run.
    #[must_use]
    pub fn reject_to(mut self, node: impl Into<String>) -> Self {
        self.reject_to = Some(node.into());
        self
    }

    /// The gate's name; inside a sub-graph with its prefix.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The question.
    #[must_use]
    pub const fn question(&self) -> &Question {
        &self.question
    }

    /// The node of a rejection.
    #[must_use]
    pub fn rejection(&self) -> Option<&str> {
        self.reject_to.as_deref()
    }
}

fn approval_schema() -> Value {
    json!({
        "type": "object",
        "properties": { "approve": { "type": "boolean" } },
        "required": ["approve"],
    })
}

/// The answers to an `uncertain` interrupt.
fn uncertain_schema() -> Value {
    json!({ "oneOf": [
        { "enum": ["retry", "skip", "fail"] },
        { "type": "object", "properties": { "result": {} }, "required": ["result"],
          "additionalProperties": false },
    ] })
}

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
    /// The answer at the deadline.
    pub default_answer: Option<Value>,
    /// Who is asked.
    pub assignees: Vec<String>,
    /// The hash of what the decision is about.
    pub args_hash: String,
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

    pub(crate) fn uncertain(id: InterruptId, node: &str) -> Self {
        let question = Question::new(format!(
            "The unsafe effect {node} began and its outcome is unknown. Look outside, then answer: \
             \"retry\" runs it again, {{\"result\": value}} takes the value as its update, \
             \"skip\" goes on without one, \"fail\" ends the run."
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

/// A person's answer, as a node reads it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The answer itself.
    pub value: Value,
    /// Who gave it.
    pub by: String,
    /// When, in ms since 1970, by the store's clock.
    pub at_ms: i64,
    /// A comment, when one was given.
    pub comment: Option<String>,
}

impl Answer {
    /// Whether the answer is `{"approve": true}`.
    #[must_use]
    pub fn is_approval(&self) -> bool {
        self.value.get("approve") == Some(&Value::Bool(true))
    }

    /// Whether the answer is `{"approve": false}`.
    #[must_use]
    pub fn is_rejection(&self) -> bool {
        self.value.get("approve") == Some(&Value::Bool(false))
    }

    /// The answer as a type of the caller's.
    ///
    /// # Errors
    /// When the answer has another shape.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_value(self.value.clone())
    }
}

/// Checks an answer against a question's schema.
///
/// # Errors
/// `E_SCHEMA` with the path in the answer and what it should be.
pub fn check_answer(schema: Option<&Value>, answer: &Value) -> Result<(), Refusal> {
    let Some(schema) = schema else { return Ok(()) };
    let validator = compiled(schema)?;
    match validator.iter_errors(answer).next() {
        None => Ok(()),
        Some(fault) => {
            let path = fault.instance_path().to_string();
            let at = if path.is_empty() { "answer".to_owned() } else { format!("answer{path}") };
            let why = printable(&fault.to_string(), 200);
            Err(Refusal::new(Code::Schema, at, format!("does not fit the question: {why}")))
        }
    }
}

pub(crate) fn compiled(schema: &Value) -> Result<jsonschema::Validator, Refusal> {
    jsonschema::validator_for(schema).map_err(|fault| {
        Refusal::new(Code::Schema, "schema", format!("is no JSON Schema: {fault}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_shows_the_state() {
        let state = State::from_json(json!({ "amount": 12, "who": "Ann" })).unwrap();
        let shown = Question::new("Charge {amount} to {who}? {\"a\":1} {none} {").shown(&state);
        assert_eq!(shown, "Charge 12 to Ann? {\"a\":1} {none} {");
    }

    #[test]
    fn an_answer_that_does_not_fit_is_refused_with_its_path() {
        let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
        let fault = check_answer(Some(&schema), &json!({ "n": "x" })).expect_err("no integer");
        assert_eq!((fault.code(), fault.field()), (Code::Schema, "answer/n"));
        assert!(check_answer(Some(&schema), &json!({ "n": 1 })).is_ok());
        assert!(check_answer(None, &Value::Null).is_ok());
    }
}
