//! Questions to people: gates before a node, and a node's own asks.
//!
//! A declaration is data as far as it can be, so that it can be shown, hashed and compared. The
//! engine turns it into an [`Interrupt`] when the run reaches it; what an answer must satisfy is
//! then in the interrupt alone, so that whoever takes an answer needs no graph to judge it.

mod answer;
mod ballot;
mod interrupt;
mod question;

pub(crate) use self::answer::compiled;
pub use self::{
    answer::{Answer, check_answer},
    ballot::Ballot,
    interrupt::{DEADLINE, Interrupt, InterruptKind, Reminder},
    question::Question,
};

/// A question that must be answered before a node starts.
#[derive(Debug, Clone)]
pub struct Gate {
    pub(crate) name: String,
    pub(crate) question: Question,
    /// Where the run goes on for a choice other than the node.
    pub(crate) routes: Vec<(String, String)>,
}

impl Gate {
    /// A gate that asks `question`; it is answered by `{"approve": true}`, `{"approve": false}`
    /// or one of the question's choices.
    pub fn new(name: impl Into<String>, question: Question) -> Self {
        Self { name: name.into(), question: question.of_approval(), routes: Vec::new() }
    }

    /// A gate that takes any JSON value for an answer and leaves its meaning to the node.
    pub fn open(name: impl Into<String>) -> Self {
        let name = name.into();
        let question = Question::new(format!("Go on at {name}?"));
        Self { name, question, routes: Vec::new() }
    }

    /// Where the run goes on when the answer is `{"approve": false}`; the gated node does not run.
    #[must_use]
    pub fn reject_to(self, node: impl Into<String>) -> Self {
        self.route(question::REJECT, node)
    }

    /// Where the run goes on for one of the question's choices; the gated node does not run.
    #[must_use]
    pub fn route(mut self, choice: impl Into<String>, node: impl Into<String>) -> Self {
        let choice = choice.into();
        self.routes.retain(|(known, _)| *known != choice);
        self.routes.push((choice, node.into()));
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

    /// The choices that lead to another node than the gated one, with that node.
    #[must_use]
    pub fn routes(&self) -> &[(String, String)] {
        &self.routes
    }

    /// The node that a choice leads to, when it is not the gated one.
    #[must_use]
    pub fn target(&self, choice: &str) -> Option<&str> {
        self.routes.iter().find(|(known, _)| known == choice).map(|(_, node)| node.as_str())
    }

    /// The choices with a route that the question does not know.
    pub(crate) fn stray_routes(&self) -> impl Iterator<Item = &str> {
        let allowed = self.question.allowed();
        let names = self.routes.iter().map(|(choice, _)| choice.as_str());
        // A question with a schema of its own may still be rejected by `{"approve": false}`.
        names.filter(move |name| *name != question::REJECT && !allowed.iter().any(|a| a == name))
    }
}

#[cfg(test)]
mod tests;
