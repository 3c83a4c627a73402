//! Interrupts: the open questions of a run, as they are stored and shown.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use super::{
    Answer, Question,
    question::{self, Text},
};
use crate::{InterruptId, KeyView, Resource, State, TaskRef, budget::in_words};

/// Who gives the default answer when a question's deadline has passed.
pub const DEADLINE: &str = "deadline";

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
    /// What the decision is about, when the question names keys of the state.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub args: Option<State>,
    /// The keys of the state that the question is about; none for all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<Vec<String>>,
    /// Under which names the question sees the state's keys.
    #[serde(default, skip_serializing_if = "KeyView::is_plain")]
    pub view: KeyView,
    /// The text before the state's values stood in it; none when it was computed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<String>,
    /// Which groups are asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Whether only those who are asked may answer.
    #[serde(default, skip_serializing_if = "is_false")]
    pub is_closed: bool,
    /// How many different people must give the same answer.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub quorum: u32,
    /// The votes so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub votes: Vec<Answer>,
    /// The key of the state that names who may not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_by: Option<String>,
    /// Who may not answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub barred: Option<String>,
    /// The keys of the state that an answer may change.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub editable: Vec<String>,
    /// The choices that need a comment.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub comment_on: Vec<String>,
    /// The reminders that are still to come, soonest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reminders: Vec<Reminder>,
}

/// A step of reminding: when, and who is asked too from then on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reminder {
    /// When, in ms since 1970.
    pub at_ms: i64,
    /// Who is asked too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<String>,
}

const fn one() -> u32 {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_one(number: &u32) -> bool {
    *number == 1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// A value that is there, whatever it is: null too.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

impl Interrupt {
    /// A question as it opens at a state; without a task, a gate and times.
    #[must_use]
    pub fn of_question(id: InterruptId, question: &Question, state: &State) -> Self {
        let text = question.shown(state);
        let args = question.about.as_ref().map(|keys| part(state, keys));
        let template = match &question.text {
            Text::Template(template) if template.contains('{') => Some(template.clone()),
            Text::Template(_) | Text::Made(_) => None,
        };
        let mut reminders: Vec<Reminder> = question
            .reminders
            .iter()
            .map(|(after, also)| Reminder { at_ms: in_ms(*after), also: also.clone() })
            .collect();
        reminders.sort_by_key(|reminder| reminder.at_ms);
        Self {
            interrupt: id,
            task: None,
            gate: None,
            key: None,
            kind: InterruptKind::Ask,
            schema: question.schema.clone(),
            allowed: question.allowed(),
            opened_at_ms: 0,
            deadline_ms: question.deadline.map(in_ms),
            default_answer: question.default_answer.clone(),
            assignees: question.assignees.clone(),
            args_hash: args_hash(&text, args.as_ref().unwrap_or(state)),
            args,
            about: question.about.clone(),
            view: KeyView::default(),
            template,
            groups: question.groups.clone(),
            is_closed: question.is_closed,
            quorum: question.quorum,
            votes: Vec::new(),
            barred: question.not_by.as_ref().and_then(|key| named(state, key)),
            not_by: question.not_by.clone(),
            editable: question.editable.clone(),
            comment_on: question.comment_on.clone(),
            reminders,
            question: text,
        }
    }

    /// Sets the times; deadline and reminders are counted from the opening.
    pub(crate) fn opened_at(mut self, now_ms: i64) -> Self {
        self.opened_at_ms = now_ms;
        self.deadline_ms = self.deadline_ms.map(|after| now_ms.saturating_add(after));
        for reminder in &mut self.reminders {
            reminder.at_ms = reminder.at_ms.saturating_add(now_ms);
        }
        self
    }

    /// The question as it is to be shown after the state was edited; none when it is the same.
    /// Votes were cast for something else, so they are gone. A computed text stays as it was.
    ///
    /// `state` is the run's own; a question of a branch sees the branch's and stays as it is, and
    /// so does one about a budget, which is about no state.
    #[must_use]
    pub fn shown_anew(&self, state: &State) -> Option<Self> {
        let is_of_branch = self.task.as_ref().is_some_and(|task| !task.branch.is_empty());
        if is_of_branch || self.kind == InterruptKind::Budget {
            return None;
        }
        let state = &self.view.inside(state);
        let mut anew = self.clone();
        if let Some(template) = &self.template {
            anew.question = question::fill(template, state);
        }
        anew.args = self.about.as_ref().map(|keys| part(state, keys));
        anew.barred = self.not_by.as_ref().and_then(|key| named(state, key));
        anew.args_hash = args_hash(&anew.question, anew.args.as_ref().unwrap_or(state));
        if anew.args_hash == self.args_hash && anew.barred == self.barred {
            return None;
        }
        anew.votes.clear();
        Some(anew)
    }

    /// Whether its deadline has passed.
    #[must_use]
    pub fn is_overdue(&self, now_ms: i64) -> bool {
        self.deadline_ms.is_some_and(|at| at <= now_ms)
    }

    /// The next time at which the question does something by itself.
    #[must_use]
    pub fn wakes_at_ms(&self) -> Option<i64> {
        let reminder = self.reminders.first().map(|reminder| reminder.at_ms);
        self.deadline_ms.into_iter().chain(reminder).min()
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

    /// `limit` and `used` are in steps or ms.
    pub(crate) fn over_budget(id: InterruptId, resource: Resource, limit: u64, used: u64) -> Self {
        let unit = match resource {
            Resource::Steps => "steps",
            Resource::Time => "seconds",
        };
        let question = Question::new(format!(
            "The run has used up its budget of {}: it used {}. {{\"raise_by\": N}} lets it go on \
             for N {unit} more, \"fail\" ends it.",
            in_words(resource, limit),
            in_words(resource, used),
        ))
        .schema(resource.answer_schema());
        let args =
            State::new().with("budget", resource.as_str()).with("limit", limit).with("used", used);
        let asked = Self::of_question(id, &question, &args);
        Self {
            kind: InterruptKind::Budget,
            key: Some(resource.as_str().to_owned()),
            allowed: ["raise_by", "fail"].map(str::to_owned).to_vec(),
            args: Some(args),
            ..asked
        }
    }
}

fn in_ms(duration: std::time::Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

/// The named keys of a state, those that are there.
fn part(state: &State, keys: &[String]) -> State {
    keys.iter().filter_map(|key| Some((key.clone(), state.get(key)?.clone()))).collect()
}

/// Whom the state names under a key.
fn named(state: &State, key: &str) -> Option<String> {
    state.get(key)?.as_str().map(str::to_owned)
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
