//! Questions to people: gates before a node, and a node's own asks.
//!
//! A declaration is data as far as it can be, so that it can be shown, hashed and compared. The
//! engine turns it into an [`Interrupt`] when the run reaches it.

mod answer;
mod interrupt;

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use serde_json::{Value, json};

pub(crate) use self::answer::compiled;
pub use self::{
    answer::{Answer, check_answer},
    interrupt::{Interrupt, InterruptKind},
};
use crate::State;

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

    /// The text as it is shown when the question opens. A panic of a computed text stands in its
    /// place, so that the question is asked all the same.
    #[must_use]
    pub fn shown(&self, state: &State) -> String {
        match &self.text {
            Text::Template(template) => fill(template, state),
            Text::Made(text) => catch_unwind(AssertUnwindSafe(|| text(state)))
                .unwrap_or_else(|panic| format!("(no text: {})", crate::panic_text(&*panic))),
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

#[cfg(test)]
mod tests;
