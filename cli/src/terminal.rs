//! The terminal of somebody who presses keys: as they are pressed, and as it was at the end.

use std::{
    io::{self, IsTerminal, Read, stdin, stdout},
    os::fd::AsFd,
};

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcgetwinsize, tcsetattr,
};
use tokio::sync::mpsc;

use crate::{
    failure::{Failure, Stop},
    out::Out,
    picker::{Key, keys::keys},
};

/// Keys that may wait; more than anybody presses while an answer is sent.
const KEYS_MAX: usize = 64;

/// Hands out keys unechoed and at once, until it is dropped: at the end, at an error and in a
/// panic. Output stays as it was, so that a message in between has its line breaks.
#[derive(Debug)]
pub(crate) struct KeyMode<Fd: AsFd> {
    terminal: Fd,
    before: Termios,
}

impl<Fd: AsFd> KeyMode<Fd> {
    /// Begins.
    pub(crate) fn begin(terminal: Fd) -> io::Result<Self> {
        let before = tcgetattr(&terminal)?;
        let mut mode = before.clone();
        let lines = LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG | LocalModes::IEXTEN;
        mode.local_modes.remove(lines);
        mode.special_codes[SpecialCodeIndex::VMIN] = 1;
        mode.special_codes[SpecialCodeIndex::VTIME] = 0;
        tcsetattr(&terminal, OptionalActions::Flush, &mode)?;
        Ok(Self { terminal, before })
    }
}

impl<Fd: AsFd> Drop for KeyMode<Fd> {
    fn drop(&mut self) {
        // What was typed ahead is not for the shell. A terminal that is gone needs nothing.
        let _gone = tcsetattr(&self.terminal, OptionalActions::Flush, &self.before);
    }
}

/// A part of the terminal that is drawn over and over, below the lines that stay.
#[derive(Debug)]
pub(crate) struct Screen {
    out: Out,
    drawn: usize,
    _mode: KeyMode<io::Stdin>,
}

impl Screen {
    /// Takes the terminal.
    ///
    /// # Errors
    /// Usage when there is none, or nobody who could press keys.
    pub(crate) fn take(out: Out) -> Result<Self, Stop> {
        if out.is_json || !stdin().is_terminal() || !stdout().is_terminal() {
            let text = "the picker needs a terminal, for keys and for what it shows";
            let fix = "gates lists the questions, approve, reject and signal answer them";
            return Err(Failure::usage("", text).with_fix(fix).into());
        }
        let mode = KeyMode::begin(stdin()).map_err(|fault| {
            Failure::new("E_TERMINAL", 1, format!("the terminal cannot be set: {fault}"))
        })?;
        Ok(Self { out, drawn: 0, _mode: mode })
    }

    /// Its columns and lines.
    pub(crate) fn size(&self) -> (usize, usize) {
        match tcgetwinsize(stdout()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                (size.ws_col.into(), size.ws_row.into())
            }
            Ok(_) | Err(_) => (80, 24),
        }
    }

    /// Draws lines in place of those that were drawn before.
    pub(crate) fn draw(&mut self, lines: &[String]) -> Result<(), Stop> {
        let back = self.back();
        self.drawn = lines.len();
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        self.out.draw(format_args!("{back}{text}"))
    }

    /// Puts a line that stays in place of what was drawn.
    pub(crate) fn keep(&mut self, line: &str) -> Result<(), Stop> {
        self.draw(&[line.to_owned()])?;
        self.drawn = 0;
        Ok(())
    }

    /// Takes away what was drawn.
    pub(crate) fn clear(&mut self) -> Result<(), Stop> {
        self.draw(&[])
    }

    /// To the begin of what was drawn, and all behind it away.
    fn back(&self) -> String {
        match self.drawn {
            0 => String::new(),
            drawn => format!("\x1b[{drawn}A\r\x1b[J"),
        }
    }
}

/// The keys that are pressed from now on. A thread reads them: nothing else can wait for them.
pub(crate) fn pressed() -> mpsc::Receiver<Key> {
    let (sender, receiver) = mpsc::channel(KEYS_MAX);
    std::thread::spawn(move || {
        let (mut bytes, mut part) = (Vec::new(), [0; 256]);
        loop {
            let count = stdin().lock().read(&mut part).unwrap_or(0);
            bytes.extend(part.iter().take(count));
            let end = (count == 0).then_some(Key::Interrupt);
            for key in keys(&mut bytes).into_iter().chain(end) {
                if sender.blocking_send(key).is_err() {
                    return;
                }
            }
            if count == 0 {
                return;
            }
        }
    });
    receiver
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use holdpoint_testkit::pseudo_terminal;

    use super::*;

    #[test]
    fn a_terminal_is_as_it_was_after_the_end_and_after_a_panic() {
        let (_person, terminal) = pseudo_terminal();
        let before = tcgetattr(&terminal).unwrap().local_modes;
        assert!(before.contains(LocalModes::ICANON | LocalModes::ECHO));
        let during = || tcgetattr(&terminal).unwrap().local_modes;
        {
            let _mode = KeyMode::begin(&terminal).unwrap();
            assert!(!during().intersects(LocalModes::ICANON | LocalModes::ECHO));
        }
        assert_eq!(during(), before);
        let panic = catch_unwind(AssertUnwindSafe(|| {
            let _mode = KeyMode::begin(&terminal).unwrap();
            panic!("a fault of the picker");
        }));
        assert!(panic.is_err());
        assert_eq!(during(), before);
    }
}
