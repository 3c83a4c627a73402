//! Colours, for terminals only.

use holdpoint_graph::RunStatus;

/// Puts colours around text, or leaves it as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Paint {
    has_colours: bool,
}

impl Paint {
    /// Colours, or none.
    pub(crate) const fn new(has_colours: bool) -> Self {
        Self { has_colours }
    }

    /// Whether there are no colours.
    pub(crate) const fn is_plain(self) -> bool {
        !self.has_colours
    }

    fn put(self, sequence: &str, text: &str) -> String {
        if self.has_colours { format!("\x1b[{sequence}m{text}\x1b[0m") } else { text.to_owned() }
    }

    /// What matters most.
    pub(crate) fn bold(self, text: &str) -> String {
        self.put("1", text)
    }

    /// What matters least.
    pub(crate) fn dim(self, text: &str) -> String {
        self.put("2", text)
    }

    /// What went wrong.
    pub(crate) fn red(self, text: &str) -> String {
        self.put("31", text)
    }

    /// What went well.
    pub(crate) fn green(self, text: &str) -> String {
        self.put("32", text)
    }

    /// What waits for somebody.
    pub(crate) fn yellow(self, text: &str) -> String {
        self.put("33", text)
    }

    /// What moves.
    pub(crate) fn cyan(self, text: &str) -> String {
        self.put("36", text)
    }

    /// The word of a run's state in its colour.
    pub(crate) fn status(self, word: &str) -> String {
        match RunStatus::from_word(word) {
            Some(RunStatus::Completed) => self.green(word),
            Some(RunStatus::Failed) => self.red(word),
            Some(RunStatus::Parked) => self.yellow(word),
            Some(RunStatus::Running) => self.cyan(word),
            Some(RunStatus::Cancelled | RunStatus::Scheduled | RunStatus::Queued) => self.dim(word),
            None => word.to_owned(),
        }
    }
}
