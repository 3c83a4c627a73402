//! The declaration of a question: what is asked, what it is about, who may answer, and when it
//! reminds.

use std::{
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use serde_json::{Map, Value, json};

use crate::State;

/// What is asked of a person, and what counts as an answer.
///
/// The text may name keys of the state in braces: `"Charge {amount} to {customer}?"`.
///
/// ```
/// use std::time::Duration;
/// use holdpoint_graph::Question;
/// use serde_json::json;
///
/// let question = Question::new("Refund {amount} to {customer}?")
///     .about(["amount", "customer"])
///     .group("finance")
///     .quorum(2)
///     .not_by("requested_by")
///     .comment_on("reject")
///     .remind(Duration::from_secs(4 * 3600), ["head-of-finance"])
///     .deadline(Duration::from_secs(72 * 3600), json!({ "approve": false }));
/// # let _ = question;
/// ```
#[derive(Clone)]
pub struct Question {
    pub(super) text: Text,
    pub(super) schema: Option<Value>,
    pub(super) about: Option<Vec<String>>,
    pub(super) choices: Vec<String>,
    pub(super) editable: Vec<String>,
    pub(super) assignees: Vec<String>,
    pub(super) groups: Vec<String>,
    pub(super) is_closed: bool,
    pub(super) quorum: u32,
    pub(super) not_by: Option<String>,
    pub(super) comment_on: Vec<String>,
    pub(super) reminders: Vec<(Duration, Vec<String>)>,
    pub(super) deadline: Option<Duration>,
    pub(super) default_answer: Option<Value>,
}

#[derive(Clone)]
pub(super) enum Text {
    Template(String),
    Made(Arc<dyn Fn(&State) -> String + Send + Sync>),
}

impl Default for Question {
    fn default() -> Self {
        Self::new("")
    }
}

impl Question {
    /// A question; `{key}` stands for the state's value of that key.
    pub fn new(template: impl Into<String>) -> Self {
        Self::of_text(Text::Template(template.into()))
    }

    /// A question whose text is computed from the state when it opens.
    pub fn made(text: impl Fn(&State) -> String + Send + Sync + 'static) -> Self {
        Self::of_text(Text::Made(Arc::new(text)))
    }

    const fn of_text(text: Text) -> Self {
        Self {
            text,
            schema: None,
            about: None,
            choices: Vec::new(),
            editable: Vec::new(),
            assignees: Vec::new(),
            groups: Vec::new(),
            is_closed: false,
            quorum: 1,
            not_by: None,
            comment_on: Vec::new(),
            reminders: Vec::new(),
            deadline: None,
            default_answer: None,
        }
    }

    /// The JSON Schema that an answer must satisfy; without one any JSON value is an answer.
    #[must_use]
    pub fn schema(mut self, schema: Value) -> Self {
        self.schema = Some(schema);
        self
    }

    /// The JSON Schema that an answer must satisfy, from the type that it is
    /// [read](super::Answer::read) as. One that does not fit is refused with the path in it, before
    /// it is stored.
    ///
    /// ```
    /// use holdpoint_graph::{Answer, Question, check_answer, schemars::JsonSchema};
    /// use serde_json::json;
    ///
    /// #[derive(Debug, PartialEq, serde::Deserialize, JsonSchema)]
    /// #[schemars(crate = "holdpoint_graph::schemars")]
    /// struct Refund {
    ///     amount: u32,
    ///     note: Option<String>,
    /// }
    ///
    /// let question = Question::new("How much?").schema_of::<Refund>();
    /// let bad = check_answer(question.answer_schema(), &json!({ "amount": "5" })).unwrap_err();
    /// assert_eq!(bad.field(), "answer/amount");
    /// let good = Answer::new(json!({ "amount": 5 }), "ann", 0);
    /// assert!(check_answer(question.answer_schema(), &good.value).is_ok());
    /// assert_eq!(good.read::<Refund>().unwrap(), Refund { amount: 5, note: None });
    /// ```
    #[cfg(feature = "schemars")]
    #[must_use]
    pub fn schema_of<T: schemars::JsonSchema>(self) -> Self {
        self.schema(schemars::schema_for!(T).to_value())
    }

    /// What exactly the decision is about: these keys of the state. They are stored with the
    /// question and shown beside it, and an answer given for other values is refused. Without
    /// this it is the whole state that a decision is bound to.
    #[must_use]
    pub fn about(mut self, keys: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.about.get_or_insert_default().extend(keys.into_iter().map(Into::into));
        self
    }

    /// One more answer, beside approve and reject: `{"choice": "NAME"}`, with whatever else the
    /// answer says. A gate may have a [route](super::Gate::route) for it.
    #[must_use]
    pub fn choice(mut self, name: impl Into<String>) -> Self {
        self.choices.push(name.into());
        self
    }

    /// Allows `{"choice": "edit", "set": {…}}`: an approval that first changes these keys of the
    /// state, and no others. The values replace what is there.
    #[must_use]
    pub fn edits(mut self, keys: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.editable.extend(keys.into_iter().map(Into::into));
        if !self.choices.iter().any(|choice| choice == EDIT) {
            self.choices.push(EDIT.to_owned());
        }
        self
    }

    /// Who is asked. Anybody may answer all the same, unless the question is [`closed`].
    ///
    /// [`closed`]: Self::closed
    #[must_use]
    pub fn assignee(mut self, name: impl Into<String>) -> Self {
        self.assignees.push(name.into());
        self
    }

    /// A group that is asked: everybody in it.
    #[must_use]
    pub fn group(mut self, name: impl Into<String>) -> Self {
        self.groups.push(name.into());
        self
    }

    /// Only assignees and members of the groups may answer.
    #[must_use]
    pub const fn closed(mut self) -> Self {
        self.is_closed = true;
        self
    }

    /// How many different people must give the same answer (1 to 100; default 1). A rejection
    /// decides at once.
    #[must_use]
    pub const fn quorum(mut self, votes: u32) -> Self {
        self.quorum = votes;
        self
    }

    /// Whoever the state names under `key` may not answer: who asks for something does not
    /// approve it.
    #[must_use]
    pub fn not_by(mut self, key: impl Into<String>) -> Self {
        self.not_by = Some(key.into());
        self
    }

    /// This choice needs a comment: `approve`, `reject` or one of the declared ones.
    #[must_use]
    pub fn comment_on(mut self, choice: impl Into<String>) -> Self {
        self.comment_on.push(choice.into());
        self
    }

    /// A reminder when nobody has decided for so long, which from then on asks these people too.
    /// Each is an event of the journal. Call it again for further steps.
    #[must_use]
    pub fn remind(
        mut self,
        after: Duration,
        also: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        self.reminders.push((after, also.into_iter().map(Into::into).collect()));
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

    /// How many different people must give the same answer.
    #[must_use]
    pub const fn votes_needed(&self) -> u32 {
        self.quorum
    }

    /// The question of a gate that is approved or rejected: without a schema of its own it takes
    /// these answers and the declared choices.
    pub(super) fn of_approval(mut self) -> Self {
        let schema = approval_schema(&self.choices, &self.editable);
        self.schema.get_or_insert(schema);
        self
    }

    /// The names of the answers that have a meaning of their own.
    pub(super) fn allowed(&self) -> Vec<String> {
        let is_approval = self.schema == Some(approval_schema(&self.choices, &self.editable));
        let approval = [APPROVE, REJECT].into_iter().filter(|_| is_approval).map(str::to_owned);
        approval.chain(self.choices.iter().cloned()).collect()
    }

    /// What is wrong with the declaration, with the way to mend it.
    pub(crate) fn faults(&self) -> Vec<(&'static str, String, &'static str)> {
        let mut faults = Vec::new();
        if !(1..=QUORUM_MAX).contains(&self.quorum) {
            let why = format!("the quorum is {}, allowed are 1 to {QUORUM_MAX}", self.quorum);
            faults.push(("bad_quorum", why, "ask for fewer votes"));
        }
        if self.is_closed && self.assignees.is_empty() && self.groups.is_empty() {
            let why = "only assignees may answer, and there are none".to_owned();
            faults.push(("no_assignee", why, "name an assignee or a group"));
        }
        if let Some(word) = self.choices.iter().find(|word| [APPROVE, REJECT].contains(&&***word)) {
            let why = format!("{word:?} is a choice of every gate");
            faults.push(("duplicate_choice", why, "leave it out"));
        }
        let allowed = self.allowed();
        if let Some(word) = self.comment_on.iter().find(|word| !allowed.contains(word)) {
            let why = format!("a comment is asked for {word:?}, which is no choice");
            faults.push(("unknown_choice", why, "declare the choice"));
        }
        faults
    }
}

/// The answer that lets the node run.
pub(super) const APPROVE: &str = "approve";
/// The answer that does not.
pub(super) const REJECT: &str = "reject";
/// The answer that changes the state first.
pub(super) const EDIT: &str = "edit";
/// The most votes that a question may need.
const QUORUM_MAX: u32 = 100;

/// The schema of `{"approve": bool}` and of the declared choices.
fn approval_schema(choices: &[String], editable: &[String]) -> Value {
    let approval = json!({
        "type": "object",
        "properties": { "approve": { "type": "boolean" } },
        "required": ["approve"],
    });
    if choices.is_empty() {
        return approval;
    }
    let (edit, others): (Vec<&String>, Vec<&String>) = choices.iter().partition(|c| *c == EDIT);
    let mut forms = vec![approval];
    if !others.is_empty() {
        forms.push(json!({
            "type": "object",
            "properties": { "choice": { "enum": others } },
            "required": ["choice"],
        }));
    }
    if !edit.is_empty() {
        let keys: Map<String, Value> =
            editable.iter().map(|key| (key.clone(), json!({}))).collect();
        forms.push(json!({
            "type": "object",
            "properties": {
                "choice": { "const": EDIT },
                "set": {
                    "type": "object",
                    "properties": keys,
                    "additionalProperties": false,
                    "minProperties": 1,
                },
            },
            "required": ["choice", "set"],
        }));
    }
    json!({ "anyOf": forms })
}

impl fmt::Debug for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Question")
            .field("template", &self.template())
            .field("about", &self.about)
            .field("schema", &self.schema)
            .field("assignees", &self.assignees)
            .field("quorum", &self.quorum)
            .field("deadline", &self.deadline)
            .finish_non_exhaustive()
    }
}

/// Puts the state's values in place of `{key}`; text in braces that is no key stays.
pub(super) fn fill(template: &str, state: &State) -> String {
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
