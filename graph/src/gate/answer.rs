//! Answers to questions, and the check against a question's schema.

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use serde_json::Value;

use crate::{Code, Refusal, printable};

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
    /// The groups they spoke for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Where the answer came from: a program, an address, the id of a signed link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// The hash of what the decision was made about, as the question had it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args_hash: Option<String>,
}

impl Answer {
    /// An answer without a comment, for no group, from nowhere in particular.
    pub fn new(value: impl Into<Value>, by: impl Into<String>, at_ms: i64) -> Self {
        Self {
            value: value.into(),
            by: by.into(),
            at_ms,
            comment: None,
            groups: Vec::new(),
            from: None,
            args_hash: None,
        }
    }

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

    /// Which of a question's allowed answers this is: a choice, or one of the words for an
    /// uncertain effect, a stale run or a budget.
    #[must_use]
    pub fn word(&self) -> Option<&str> {
        let is_there = |key: &&str| self.value.get(key).is_some();
        let field = ["result", "raise_by"].into_iter().find(is_there);
        self.choice().or(self.value.as_str()).or(field)
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
