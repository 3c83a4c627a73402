//! What a caller says with an answer: to whom, what, who, and why.

use holdpoint_graph::{
    Code, InterruptId, Refusal, json,
    limits::{ANSWER_BYTES_MAX, COMMENT_BYTES_MAX},
    printable, shown,
};
use holdpoint_storage::Address;
use serde_json::{Value, json};

/// An answer and whom it is for.
///
/// ```
/// use holdpoint_producer::SignalOptions;
/// let signal = SignalOptions::run("order-7").gate("refund").approve().by("ann");
/// # let _ = signal;
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct SignalOptions {
    pub(crate) target: Target,
    question: Question,
    answer: Option<Value>,
    pub(crate) by: String,
    pub(crate) comment: Option<String>,
    pub(crate) key: Option<String>,
    pub(crate) args_hash: Option<String>,
    pub(crate) groups: Vec<String>,
    pub(crate) from: Option<String>,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Target {
    Run(String),
    Session(String),
}

#[derive(Debug, Clone, PartialEq)]
enum Question {
    Only,
    Interrupt(String),
    Gate(String),
}

impl SignalOptions {
    /// To the one open question of a run.
    pub fn run(run: impl Into<String>) -> Self {
        Self::to(Target::Run(run.into()))
    }

    /// To the one open question of a session's active run.
    pub fn session(session: impl Into<String>) -> Self {
        Self::to(Target::Session(session.into()))
    }

    fn to(target: Target) -> Self {
        Self {
            target,
            question: Question::Only,
            answer: None,
            by: "anonymous".to_owned(),
            comment: None,
            key: None,
            args_hash: None,
            groups: Vec::new(),
            from: None,
        }
    }

    /// To this opening of a question.
    #[must_use]
    pub fn interrupt(mut self, interrupt: impl Into<String>) -> Self {
        self.question = Question::Interrupt(interrupt.into());
        self
    }

    /// To the gate of this name. One that is not open yet takes the answer when it opens.
    #[must_use]
    pub fn gate(mut self, gate: impl Into<String>) -> Self {
        self.question = Question::Gate(gate.into());
        self
    }

    /// The answer; null, false, the empty text and `{}` are answers too.
    #[must_use]
    pub fn answer(mut self, answer: impl Into<Value>) -> Self {
        self.answer = Some(answer.into());
        self
    }

    /// The answer `{"approve": true}`.
    #[must_use]
    pub fn approve(self) -> Self {
        self.answer(json!({ "approve": true }))
    }

    /// The answer `{"approve": false}`.
    #[must_use]
    pub fn reject(self) -> Self {
        self.answer(json!({ "approve": false }))
    }

    /// Who decided. Default: `anonymous`.
    #[must_use]
    pub fn by(mut self, by: impl Into<String>) -> Self {
        self.by = by.into();
        self
    }

    /// A group that whoever decides speaks for; call it again for further ones.
    #[must_use]
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.groups.push(group.into());
        self
    }

    /// Where the decision was made, for the record: a program, an address.
    #[must_use]
    pub fn from(mut self, from: impl Into<String>) -> Self {
        self.from = Some(from.into());
        self
    }

    /// A comment for the record.
    #[must_use]
    pub fn comment(mut self, comment: impl Into<String>) -> Self {
        self.comment = Some(comment.into());
        self
    }

    /// The id of the call: repeated with the same answer it has one effect and one reply.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = Some(key.into());
        self
    }

    /// The hash of what the decision was made about; it is refused when that is another by now.
    #[must_use]
    pub fn args_hash(mut self, args_hash: impl Into<String>) -> Self {
        self.args_hash = Some(args_hash.into());
        self
    }

    /// One for each of these answers, by the ids of their questions, and like this one otherwise:
    /// for [`Producer::signal_all`](crate::Producer::signal_all).
    ///
    /// ```
    /// use holdpoint_producer::SignalOptions;
    /// use serde_json::json;
    ///
    /// let answers = [("id-1", json!({ "approve": true })), ("id-2", json!("blue"))];
    /// let signals = SignalOptions::run("order-7").by("ann").each(answers);
    /// assert_eq!(signals.len(), 2);
    /// ```
    pub fn each(
        &self,
        answers: impl IntoIterator<Item = (impl Into<String>, impl Into<Value>)>,
    ) -> Vec<Self> {
        let one = |(interrupt, answer)| self.clone().interrupt(interrupt).answer(answer);
        answers.into_iter().map(one).collect()
    }

    pub(crate) fn checked_answer(&self) -> Result<&Value, Refusal> {
        let missing =
            || Refusal::new(Code::Schema, "answer", "is missing, a JSON value was expected");
        let answer = self.answer.as_ref().ok_or_else(missing)?;
        json::check_depth(answer).map_err(|refusal| refusal.within("answer"))?;
        at_most("answer", json::to_bytes(answer).len(), ANSWER_BYTES_MAX)?;
        at_most("by", self.by.len(), COMMENT_BYTES_MAX)?;
        at_most("from", self.from.as_ref().map_or(0, String::len), COMMENT_BYTES_MAX)?;
        for group in &self.groups {
            at_most("group", group.len(), COMMENT_BYTES_MAX)?;
        }
        at_most("comment", self.comment.as_ref().map_or(0, String::len), COMMENT_BYTES_MAX)?;
        Ok(answer)
    }

    /// Whom the answer is for, in words.
    pub(crate) fn to_whom(&self) -> String {
        match &self.question {
            Question::Only => "the only question".to_owned(),
            Question::Interrupt(id) => printable(id, 80),
            Question::Gate(gate) => format!("gate {}", printable(gate, 80)),
        }
    }

    pub(crate) fn address(&self) -> Result<Address, Refusal> {
        Ok(match &self.question {
            Question::Only => Address::Only,
            Question::Interrupt(interrupt) => Address::Interrupt(InterruptId::new(interrupt)?),
            Question::Gate(gate) => Address::Gate(gate_name(gate)?),
        })
    }
}

/// A gate's name may have the prefixes of sub-graphs, so it is no id; but it is printable.
fn gate_name(gate: &str) -> Result<String, Refusal> {
    if gate.is_empty() || gate.chars().any(char::is_control) {
        let message = format!("is {}, which names no gate", shown(gate, 40));
        return Err(Refusal::new(Code::Id, "gate", message));
    }
    at_most("gate", gate.len(), COMMENT_BYTES_MAX)?;
    Ok(gate.to_owned())
}

pub(crate) fn at_most(field: &str, bytes: usize, max: usize) -> Result<(), Refusal> {
    if bytes <= max {
        return Ok(());
    }
    let message = format!("has {bytes} bytes, the limit is {max}");
    Err(Refusal::new(Code::TooLarge, field, message))
}
