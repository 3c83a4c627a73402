//! A program at a terminal: what it shows, keys for it, and the terminal's settings.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, ExitStatus};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustix::fs::{Mode, OFlags};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{LocalModes, Winsize, tcgetattr, tcsetwinsize};

use crate::until::{Deadline, pause};
use crate::{Program, Signal, signal};

/// A running program at a terminal of its own; dropping it kills the program.
#[derive(Debug)]
pub struct Terminal {
    name: String,
    child: Child,
    person: File,
    seen: Arc<Mutex<Vec<u8>>>,
}

/// A terminal that no program uses yet: the person's side and the program's.
///
/// # Panics
///
/// When the system has none.
#[must_use]
pub fn pseudo_terminal() -> (OwnedFd, OwnedFd) {
    let person = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC)
        .expect("the system has a free terminal");
    grantpt(&person).expect("our own terminal");
    unlockpt(&person).expect("our own terminal");
    let path = ptsname(&person, Vec::new()).expect("our own terminal has a name");
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::CLOEXEC;
    let program = rustix::fs::open(path, flags, Mode::empty()).expect("our own terminal");
    (person, program)
}

impl Terminal {
    pub(crate) fn spawn(program: &Program) -> Self {
        let (person, terminal) = pseudo_terminal();
        let size = Winsize { ws_row: 30, ws_col: 100, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&person, size).expect("our own terminal");
        let clone = || terminal.try_clone().expect("our own terminal");
        let child = program
            .command()
            .stdin(clone())
            .stdout(clone())
            .stderr(clone())
            .process_group(0)
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {}: {error}", program.name()));
        let person = File::from(person);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (mut reads, sees) = (person.try_clone().expect("our own terminal"), Arc::clone(&seen));
        std::thread::spawn(move || {
            let mut part = [0; 4_096];
            // The end is an error: no program has the other side open.
            while let Ok(count @ 1..) = reads.read(&mut part) {
                let mut seen = sees.lock().unwrap_or_else(PoisonError::into_inner);
                seen.extend(part.iter().take(count));
            }
        });
        Self { name: program.name(), child, person, seen }
    }

    /// Presses keys.
    ///
    /// # Panics
    ///
    /// When the terminal takes none.
    pub fn press(&mut self, keys: &str) {
        self.person.write_all(keys.as_bytes()).expect("our own terminal takes keys");
    }

    /// Everything that was shown so far, escape sequences included.
    #[must_use]
    pub fn seen(&self) -> String {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&seen).into_owned()
    }

    /// Whether the terminal echoes, and hands out whole lines, as one does in which nothing runs.
    ///
    /// # Panics
    ///
    /// When the system does not tell.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        let modes = tcgetattr(&self.person).expect("our own terminal").local_modes;
        modes.contains(LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG)
    }

    /// Sends `signal` to the program.
    pub fn signal(&mut self, signal: Signal) {
        signal::send(&mut self.child, signal);
    }

    /// Waits for the end of the program.
    ///
    /// # Panics
    ///
    /// When it still runs after `deadline`; the message shows what was seen.
    #[track_caller]
    pub fn wait(&mut self, deadline: Duration) -> ExitStatus {
        let end = Deadline::after(deadline);
        loop {
            if let Some(status) = self.child.try_wait().expect("the state of our own child") {
                return status;
            }
            let seen = self.seen();
            assert!(!end.has_passed(), "{} still runs after {deadline:?}:\n{seen}", self.name);
            pause();
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        signal::send_to_group(&self.child, Signal::Kill);
        let _reaped = self.child.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::until;

    const SOON: Duration = Duration::from_secs(20);

    #[test]
    fn keys_arrive_and_what_is_shown_is_seen() {
        let script = "test -t 0 && test -t 1 && stty size && read line && echo got $line";
        let mut terminal = Program::new("sh").args(["-c", script]).spawn_at_terminal();
        until("the size", SOON, || terminal.seen().contains("30 100").then_some(()));
        assert!(terminal.is_plain());
        terminal.press("word\n");
        assert_eq!(terminal.wait(SOON).code(), Some(0));
        until("the echo", SOON, || terminal.seen().contains("got word").then_some(()));
    }

    #[test]
    fn changed_settings_are_noticed() {
        let script = "stty -echo; echo changed; read line";
        let mut terminal = Program::new("sh").args(["-c", script]).spawn_at_terminal();
        until("the change", SOON, || terminal.seen().contains("changed").then_some(()));
        assert!(!terminal.is_plain());
        terminal.signal(Signal::Kill);
        assert_eq!(terminal.wait(SOON).code(), None);
    }
}
