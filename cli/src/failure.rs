//! Why a command ends before its time, with the exit code that says so.

use holdpoint_graph::{Code, Refusal, printable};
use holdpoint_producer::ProducerError;
use holdpoint_storage::StoreError;
use serde_json::json;

/// A failure as it is shown: a stable code, the exit code, what went wrong and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    /// The stable code, `E_…`.
    pub(crate) code: String,
    /// The exit code.
    pub(crate) exit: u8,
    /// What went wrong, on one line.
    pub(crate) message: String,
    /// The option or field at fault; empty when it is none.
    pub(crate) field: String,
    /// What to do.
    pub(crate) fix: Option<String>,
}

/// The end of a command that did not come to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It failed, and nobody has said so yet.
    Failed(Box<Failure>),
    /// Everything is said; the process ends with this code.
    Exit(u8),
    /// Whoever read stdout went away.
    ClosedPipe,
}

impl Failure {
    /// A failure with a code of its own.
    pub(crate) fn new(code: &str, exit: u8, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            exit,
            message: message.into(),
            field: String::new(),
            fix: None,
        }
    }

    /// A failure with one of the stable codes.
    pub(crate) fn of(code: Code, message: impl Into<String>) -> Self {
        Self::new(code.as_str(), code.exit_status(), message)
    }

    /// A wrong use of the command line or of the configuration.
    pub(crate) fn usage(field: &str, message: impl Into<String>) -> Self {
        Self::of(Code::Usage, message).at(field)
    }

    /// The same failure of this option or field.
    pub(crate) fn at(self, field: &str) -> Self {
        Self { field: field.to_owned(), ..self }
    }

    /// The same failure with what to do.
    pub(crate) fn with_fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }

    /// The one-line JSON of the failure.
    pub(crate) fn to_json(&self) -> String {
        let mut error = json!({ "code": self.code, "message": self.message });
        if !self.field.is_empty() {
            error["field"] = self.field.as_str().into();
        }
        json!({ "error": error }).to_string()
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(Box::new(failure))
    }
}

impl From<Refusal> for Stop {
    fn from(refusal: Refusal) -> Self {
        let failure = Failure::of(refusal.code(), one_line(&refusal.to_string()));
        failure.at(refusal.field()).into()
    }
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        ProducerError::from(error).into()
    }
}

impl From<ProducerError> for Stop {
    fn from(error: ProducerError) -> Self {
        let failure = Failure::of(error.code(), one_line(&error.to_string()));
        let fix = match error.code() {
            Code::UnknownOutcome => Some("repeat the command with the same --key or --run"),
            Code::Sequence => Some("look at the run, then repeat with the number of that event"),
            Code::UnknownGraph => Some("--allow-unknown lets it wait for a worker that knows it"),
            _ => None,
        };
        let fix = fix.map(str::to_owned);
        Failure { fix, ..failure.at(error.field()) }.into()
    }
}

/// Text from outside, on one line and without control characters.
fn one_line(text: &str) -> String {
    printable(text, 2_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_names_code_field_and_exit() {
        let Stop::Failed(failure) = Refusal::new(Code::Range, "priority", "is 12").into() else {
            panic!("it is a failure");
        };
        assert_eq!(failure.exit, 3);
        assert_eq!(
            failure.to_json(),
            r#"{"error":{"code":"E_RANGE","field":"priority","message":"priority is 12"}}"#
        );
    }

    #[test]
    fn text_from_outside_never_reaches_the_terminal_raw() {
        let refusal = Refusal::new(Code::Id, "run", "is \"\u{1b}[2J\"");
        let Stop::Failed(failure) = refusal.into() else { panic!("it is a failure") };
        assert_eq!(failure.message, "run is \"\\x1b[2J\"");
    }
}
