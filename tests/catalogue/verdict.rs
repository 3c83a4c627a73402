//! What a walk found.

use std::time::Duration;

/// How soon every input is answered.
pub(crate) const SOON: Duration = Duration::from_secs(1);
/// What a machine that is busy with other tests may make of it. Only more than this is a fault.
pub(crate) const AT_LAST: Duration = Duration::from_secs(30);

/// The sum of a walk.
#[derive(Debug, Default)]
pub(crate) struct Walked {
    /// Rows times stores.
    pub(crate) checks: usize,
    /// How many of them held.
    pub(crate) passed: usize,
    /// How many took longer than they should.
    pub(crate) slow: usize,
    /// What did not hold.
    pub(crate) faults: Vec<String>,
}

impl Walked {
    /// Counts one check.
    pub(crate) fn add(&mut self, name: &str, verdict: Result<(), String>, took: Duration) {
        self.checks += 1;
        self.slow += usize::from(took > SOON);
        let verdict = match took > AT_LAST {
            true => verdict.and(Err(format!("answered after {took:?}"))),
            false => verdict,
        };
        match verdict {
            Ok(()) => self.passed += 1,
            Err(why) => self.faults.push(format!("{name}: {why}")),
        }
    }

    pub(crate) fn and(mut self, other: Self) -> Self {
        self.checks += other.checks;
        self.passed += other.passed;
        self.slow += other.slow;
        self.faults.extend(other.faults);
        self
    }
}

/// Whether a text is fit for a terminal and a log: one line of bounded length, nothing raw, none
/// of the secrets that the rows carry.
pub(crate) fn check_text(text: &str) -> Result<(), String> {
    let is_raw =
        |c: char| c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}');
    if text.contains(is_raw) {
        return Err(format!("raw text: {text:?}"));
    }
    if text.chars().count() > 700 {
        return Err(format!("a long text of {} characters: {text}", text.chars().count()));
    }
    if text.contains("s3cret") {
        return Err(format!("it tells a secret: {text}"));
    }
    Ok(())
}

/// Whether a text says all of `parts`.
pub(crate) fn check_says(text: &str, parts: &[String]) -> Result<(), String> {
    match parts.iter().find(|part| !text.contains(part.as_str())) {
        Some(part) => Err(format!("no {part:?} in {text:?}")),
        None => Ok(()),
    }
}
