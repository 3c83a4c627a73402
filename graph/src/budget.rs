//! Budgets: what a run may use up before a person is asked whether it goes on.
//!
//! A limit (`max_steps`, a deadline) ends a run; a budget asks. What was used is folded from the
//! journal, so neither a crash nor a new owner gives any of it back.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::limits::{DELAY_MS_MAX, STEPS_MAX};

/// What a run may use up before a person is asked whether it goes on.
///
/// ```
/// use holdpoint_graph::Budget;
/// let budget = Budget { steps: Some(50), ..Budget::default() };
/// assert!(!budget.is_none());
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Distinct tasks that ended; none for as many as there are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Time in which a worker had the run, in ms; none for as much as it takes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
}

/// What a budget is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Resource {
    /// Distinct tasks that ended.
    Steps,
    /// Time in which a worker had the run.
    Time,
}

impl Resource {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::Time => "time",
        }
    }

    /// The resource of a word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Steps, Self::Time].into_iter().find(|resource| resource.as_str() == word)
    }

    /// How much of it one of an answer's `raise_by` is, in what is counted: steps, or ms.
    pub(crate) const fn unit(self) -> u64 {
        match self {
            Self::Steps => 1,
            Self::Time => 1_000,
        }
    }

    /// The most that one answer may add, in its unit.
    const fn raise_max(self) -> u64 {
        match self {
            Self::Steps => STEPS_MAX,
            Self::Time => DELAY_MS_MAX.unsigned_abs() / 1_000,
        }
    }

    /// The schema of an answer. Each keyword is about one type, so that a fault has its path.
    pub(crate) fn answer_schema(self) -> Value {
        json!({
            "type": ["string", "object"],
            "pattern": "^fail$",
            "properties": {
                "raise_by": { "type": "integer", "minimum": 1, "maximum": self.raise_max() },
            },
            "required": ["raise_by"],
            "additionalProperties": false,
        })
    }
}

impl Budget {
    /// Whether nothing is limited.
    #[must_use]
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// The budget of one resource.
    #[must_use]
    pub const fn of(&self, resource: Resource) -> Option<u64> {
        match resource {
            Resource::Steps => self.steps,
            Resource::Time => self.time_ms,
        }
    }

    /// So much more than the limit, or than what was used when that is more.
    pub(crate) fn raise(&mut self, resource: Resource, used: u64, by: u64) {
        let limit = match resource {
            Resource::Steps => &mut self.steps,
            Resource::Time => &mut self.time_ms,
        };
        *limit = limit.map(|limit| limit.max(used).saturating_add(by));
    }
}

/// What a run may use up: a limit that ends it, and a budget that asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunLimits {
    /// The most distinct tasks of its life.
    pub max_steps: u64,
    /// The budget.
    pub budget: Budget,
}

impl From<u64> for RunLimits {
    fn from(max_steps: u64) -> Self {
        Self { max_steps, budget: Budget::default() }
    }
}

/// The time that a run used, as its journal tells: what its owners counted, and of one that was
/// lost the rest of the time that it had the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TimeUsed {
    pub(crate) ms: u64,
    /// The part of it that the newest owner counted, and that owner.
    of_owner_ms: u64,
    epoch: u64,
}

impl TimeUsed {
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }

    pub(crate) const fn claimed(&mut self, epoch: u64) {
        (self.epoch, self.of_owner_ms) = (epoch, 0);
    }

    pub(crate) const fn counted(&mut self, ms: u64) {
        self.ms = self.ms.saturating_add(ms);
        self.of_owner_ms = self.of_owner_ms.saturating_add(ms);
    }

    /// An owner that was lost had the run for so long.
    pub(crate) const fn lost(&mut self, epoch: u64, had_ms: u64) {
        let counted = if epoch == self.epoch { self.of_owner_ms } else { 0 };
        self.ms = self.ms.saturating_add(had_ms.saturating_sub(counted));
    }
}

/// How much an answer raises a budget by, in what is counted; none when it does not.
pub(crate) fn raised_by(answer: &Value, resource: Resource) -> Option<u64> {
    let given = answer.get("raise_by")?;
    // A schema takes 2.0 for a whole number.
    let whole = given.as_u64().or_else(|| given.as_f64().map(|number| number as u64));
    whole.map(|whole| whole.saturating_mul(resource.unit()))
}

/// An amount in words.
pub(crate) fn in_words(resource: Resource, amount: u64) -> String {
    match resource {
        Resource::Steps if amount == 1 => "1 step".to_owned(),
        Resource::Steps => format!("{amount} steps"),
        Resource::Time if amount.is_multiple_of(1_000) => format!("{} s", amount / 1_000),
        Resource::Time => format!("{amount} ms"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_raise_is_counted_from_what_was_used() {
        let mut budget = Budget { steps: Some(5), time_ms: Some(10) };
        budget.raise(Resource::Steps, 5, 3);
        budget.raise(Resource::Time, 25, 1_000);
        assert_eq!(budget, Budget { steps: Some(8), time_ms: Some(1_025) });
        let mut none = Budget::default();
        none.raise(Resource::Steps, 5, 3);
        assert!(none.is_none(), "what has no limit gets none");
    }

    #[test]
    fn the_time_of_a_lost_owner_counts_once() {
        let mut used = TimeUsed::default();
        used.claimed(1);
        used.counted(30);
        used.lost(1, 100);
        assert_eq!(used.ms, 100, "what it counted and the rest");
        used.lost(2, 50);
        assert_eq!(used.ms, 150, "an owner that wrote nothing");
        used.claimed(3);
        used.counted(7);
        assert_eq!(used.ms, 157);
        used.lost(3, 5);
        assert_eq!(used.ms, 157, "never less than it counted");
    }

    #[test]
    fn an_answer_is_a_whole_number_or_the_end() {
        let check = |resource: Resource, answer: Value, expect: Result<Option<u64>, &str>| {
            let schema = resource.answer_schema();
            let got =
                crate::check_answer(Some(&schema), &answer).map(|()| raised_by(&answer, resource));
            let got = got.as_ref().map_err(crate::Refusal::field);
            assert_eq!(got, expect.as_ref().map_err(|field| *field), "{answer}");
        };
        check(Resource::Steps, json!({ "raise_by": 3 }), Ok(Some(3)));
        check(Resource::Steps, json!({ "raise_by": 3.0 }), Ok(Some(3)));
        check(Resource::Time, json!({ "raise_by": 60 }), Ok(Some(60_000)));
        check(Resource::Time, json!("fail"), Ok(None));
        for bad in [json!(0), json!(-1), json!(1.5), json!("3"), json!(STEPS_MAX + 1), json!(null)]
        {
            check(Resource::Steps, json!({ "raise_by": bad }), Err("answer/raise_by"));
        }
        for bad in [json!(null), json!(3), json!("go on"), json!({}), json!([])] {
            check(Resource::Steps, bad, Err("answer"));
        }
        check(Resource::Steps, json!({ "raise_by": 3, "stop": true }), Err("answer"));
    }
}
