//! What a rule has to complain about.

use std::fmt;

/// One breach of one rule, with the place and the way out.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Fault {
    /// The file, from the root of the repository.
    pub(crate) path: String,
    /// The line, from 1; 1 too when the fault is the whole file's.
    pub(crate) line: usize,
    /// What is wrong, with the value that is wrong.
    pub(crate) what: String,
    /// What to do about it.
    pub(crate) fix: &'static str,
}

impl Fault {
    pub(crate) fn new(path: &str, line: usize, what: impl Into<String>, fix: &'static str) -> Self {
        Self { path: path.to_owned(), line, what: what.into(), fix }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}; {}", self.path, self.line, self.what, self.fix)
    }
}

/// The lines of `text` with their numbers from 1.
pub(crate) fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines().enumerate().map(|(index, line)| (index + 1, line))
}

/// The numbers of the lines in `faults`, for tests.
#[cfg(test)]
pub(crate) fn lines_of(faults: &[Fault]) -> Vec<usize> {
    faults.iter().map(|fault| fault.line).collect()
}
