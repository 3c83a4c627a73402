//! Whether an answer is one: who may give it, what it must say, and how many it takes.
//!
//! Everything here is a function of the stored question and the answer, so that a producer
//! refuses an answer before it is stored for the same reason for which the engine would not take
//! it.

use serde_json::Value;

use super::{
    Answer, Interrupt, InterruptKind, check_answer,
    question::{APPROVE, EDIT, REJECT},
};
use crate::{
    Code, Patch, Progress, Refusal, fingerprint::of_parts, limits::STATE_BYTES_MAX, printable,
    shown,
};

/// An acceptable answer to a question that needs several: what it stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ballot {
    /// Who votes, as a short hash of the name.
    pub voter: String,
    /// What for, as a short hash of the choice and of the values of an edit.
    pub choice: String,
    /// How many such votes decide.
    pub needed: u32,
}

impl Answer {
    /// The name of what was chosen: `approve`, `reject`, or the text of `choice`.
    #[must_use]
    pub fn choice(&self) -> Option<&str> {
        match self.value.get("approve") {
            Some(Value::Bool(true)) => Some(APPROVE),
            Some(Value::Bool(false)) => Some(REJECT),
            Some(_) | None => self.value.get("choice").and_then(Value::as_str),
        }
    }

    /// The values that an edit sets.
    fn edits(&self) -> impl Iterator<Item = (&String, &Value)> {
        let set = (self.choice() == Some(EDIT)).then(|| self.value.get("set")).flatten();
        set.and_then(Value::as_object).into_iter().flatten()
    }
}

impl Interrupt {
    /// Whether `answer` may be taken as an answer to this question, by itself or as a vote.
    ///
    /// # Errors
    /// `E_SCHEMA` with the path in the answer; `E_NOT_ALLOWED` when this person may not answer;
    /// `E_VOTED` when they did already.
    pub fn check(&self, answer: &Answer) -> Result<(), Refusal> {
        self.check_edits(answer)?;
        check_answer(self.schema.as_ref(), &answer.value)
            .map_err(|refusal| self.unknown_choice(answer).unwrap_or(refusal))?;
        let by = printable(&answer.by, 80);
        let not_allowed = |why: String| Err(Refusal::new(Code::NotAllowed, "by", why));
        if self.barred.as_ref() == Some(&answer.by) {
            return not_allowed(format!("is {by}, who asked for this and may not answer it"));
        }
        if self.is_closed && !self.is_asked(answer) {
            let asked = self.asked().collect::<Vec<_>>().join(", ");
            return not_allowed(format!("is {by}, who is not among those who are asked: {asked}"));
        }
        if self.votes.iter().any(|vote| vote.by == answer.by) {
            let why = format!("is {by}, who has voted on {} already", self.interrupt);
            return Err(Refusal::new(Code::Voted, "by", why));
        }
        let choice = answer.choice().unwrap_or_default();
        let has_comment = answer.comment.as_ref().is_some_and(|text| !text.trim().is_empty());
        if self.comment_on.iter().any(|word| word == choice) && !has_comment {
            let why = format!("is missing; {choice} needs one");
            return Err(Refusal::new(Code::Schema, "comment", why));
        }
        Ok(())
    }

    /// Looked at before the schema, which cannot say which key of an edit is at fault.
    fn check_edits(&self, answer: &Answer) -> Result<(), Refusal> {
        let Some((key, _)) = answer.edits().find(|(key, _)| !self.editable.contains(key)) else {
            return Ok(());
        };
        let may = match self.editable.as_slice() {
            [] => "no edits".to_owned(),
            keys => keys.join(", "),
        };
        let at = format!("answer/set/{}", printable(key, 80));
        let why = format!("may not be edited; the question allows {may}");
        Err(Refusal::new(Code::Schema, at, why))
    }

    /// Names the choices there are, where the schema can only say that no form fits.
    fn unknown_choice(&self, answer: &Answer) -> Option<Refusal> {
        let choice = answer.choice()?;
        let is_known = self.allowed.iter().any(|known| known == choice);
        let why = || {
            let may = self.allowed.join(", ");
            format!("is {}, allowed are {may}", shown(choice, 40))
        };
        let has_choices = matches!(self.kind, InterruptKind::Gate | InterruptKind::Ask);
        let is_odd = has_choices && !is_known && !self.allowed.is_empty();
        is_odd.then(|| Refusal::new(Code::Schema, "answer/choice", why()))
    }

    /// Whether an answer changes the state.
    #[must_use]
    pub fn is_edit(&self, answer: &Answer) -> bool {
        answer.edits().next().is_some()
    }

    /// What an answer changes in the state that the question sees, under the names of the run.
    ///
    /// # Errors
    /// `E_TOO_LARGE` when the state would have more than
    /// [`STATE_BYTES_MAX`](crate::limits::STATE_BYTES_MAX).
    pub fn edit(&self, progress: &Progress, answer: &Answer) -> Result<Vec<Patch>, Refusal> {
        let set = answer.edits();
        let patches: Vec<Patch> =
            set.map(|(key, value)| Patch::set(self.view.outer(key), value.clone())).collect();
        if patches.is_empty() {
            return Ok(patches);
        }
        let branch = self.task.as_ref().map(|task| task.branch.as_slice()).unwrap_or_default();
        let mut state = progress.state_at(branch).cloned().unwrap_or_default();
        state.apply(&patches);
        let bytes = state.json_len();
        if bytes > STATE_BYTES_MAX {
            let why = format!("makes a state of {bytes} bytes, the limit is {STATE_BYTES_MAX}");
            return Err(Refusal::new(Code::TooLarge, "answer/set", why));
        }
        Ok(patches)
    }

    fn is_asked(&self, answer: &Answer) -> bool {
        self.assignees.contains(&answer.by)
            || self.groups.iter().any(|group| answer.groups.contains(group))
    }

    /// The names of the people and groups that are asked.
    pub fn asked(&self) -> impl Iterator<Item = &str> {
        self.assignees.iter().chain(&self.groups).map(String::as_str)
    }

    /// What an answer stands for when the question needs several; none when one decides.
    #[must_use]
    pub fn ballot(&self, answer: &Answer) -> Option<Ballot> {
        if self.quorum <= 1 {
            return None;
        }
        let needed = if answer.choice() == Some(REJECT) { 1 } else { self.quorum };
        let voter = of_parts(&["voter", &answer.by]);
        Some(Ballot { voter, choice: stands_for(answer), needed })
    }

    /// Whether the answer decides, together with the votes that were cast.
    #[must_use]
    pub fn decides(&self, answer: &Answer) -> bool {
        let Some(ballot) = self.ballot(answer) else { return true };
        let same = self.votes.iter().filter(|vote| stands_for(vote) == ballot.choice).count();
        u32::try_from(same).unwrap_or(u32::MAX).saturating_add(1) >= ballot.needed
    }
}

/// Answers that count as the same: by their choice, and an edit by its values; an answer without
/// a choice by its value.
fn stands_for(answer: &Answer) -> String {
    match answer.choice() {
        Some(EDIT) => {
            let set: std::collections::BTreeMap<_, _> = answer.edits().collect();
            of_parts(&[EDIT, &serde_json::to_string(&set).unwrap_or_default()])
        }
        Some(choice) => of_parts(&["choice", choice]),
        None => of_parts(&["value", &answer.value.to_string()]),
    }
}
