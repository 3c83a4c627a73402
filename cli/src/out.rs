//! The only place that writes to stdout: JSON for programs, text for people.
//!
//! Stdout is data, stderr is talk. A reader that went away ends the command quietly; any other
//! failure to write is an error, since half a document must not count as success.

use std::{
    fmt::Display,
    io::{ErrorKind, IsTerminal, Write},
};

use serde::Serialize;

use crate::{
    failure::{Failure, Stop},
    paint::Paint,
};

/// Where and how a command says what it found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Out {
    /// Whether stdout is for a program.
    pub(crate) is_json: bool,
    /// How text on stdout is coloured.
    pub(crate) paint: Paint,
    /// How text on stderr is coloured.
    pub(crate) talk: Paint,
}

impl Out {
    /// Output for a program (`is_json`) or for whoever reads stdout.
    pub(crate) fn new(is_json: bool) -> Self {
        let has_colours = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let paint = Paint::new(has_colours && !is_json && std::io::stdout().is_terminal());
        let talk = Paint::new(has_colours && std::io::stderr().is_terminal());
        Self { is_json, paint, talk }
    }

    /// One line of text on stdout.
    pub(crate) fn line(&self, text: impl Display) -> Result<(), Stop> {
        write(|out| writeln!(out, "{text}"))
    }

    /// One JSON document on a line of its own.
    pub(crate) fn json(&self, value: &impl Serialize) -> Result<(), Stop> {
        let mut line = serde_json::to_vec(value).expect("what is shown always has a text");
        line.push(b'\n');
        write(|out| out.write_all(&line))
    }

    /// A JSON document, or for people the text that `human` makes.
    pub(crate) fn show(
        &self,
        value: &impl Serialize,
        human: impl FnOnce() -> String,
    ) -> Result<(), Stop> {
        if self.is_json {
            return self.json(value);
        }
        let text = human();
        if text.is_empty() { Ok(()) } else { self.line(text.trim_end_matches('\n')) }
    }

    /// Text for a terminal as it is, shown at once.
    pub(crate) fn draw(&self, text: impl Display) -> Result<(), Stop> {
        write(|out| {
            write!(out, "{text}")?;
            out.flush()
        })
    }

    /// One line of talk on stderr; one that cannot be written is dropped.
    pub(crate) fn say(&self, text: impl Display) {
        drop(writeln!(std::io::stderr().lock(), "{text}"));
    }

    /// A line of talk for people only.
    pub(crate) fn hint(&self, text: impl Display) {
        if !self.is_json {
            self.say(self.talk.dim(&text.to_string()));
        }
    }

    /// Says why a command failed.
    pub(crate) fn fail(&self, failure: &Failure) {
        let code = self.talk.red(&format!("error[{}]", failure.code));
        self.say(format_args!("{code}: {}", failure.message));
        if let Some(fix) = &failure.fix {
            self.say(self.talk.dim(&format!("  {fix}")));
        }
        if self.is_json {
            self.say(failure.to_json());
        }
    }

    /// Gives everything that was written to the system.
    pub(crate) fn flush(&self) -> Result<(), Stop> {
        write(Write::flush)
    }
}

fn write(
    put: impl FnOnce(&mut std::io::StdoutLock<'static>) -> std::io::Result<()>,
) -> Result<(), Stop> {
    put(&mut std::io::stdout().lock()).map_err(|fault| {
        if fault.kind() == ErrorKind::BrokenPipe {
            return Stop::ClosedPipe;
        }
        Failure::new("E_OUTPUT", 1, format!("stdout takes nothing more: {fault}")).into()
    })
}
