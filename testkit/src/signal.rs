//! Unix signals by the names of what they do to a process.

use std::process::Child;

use rustix::process::{Pid, kill_process, kill_process_group};

/// A signal that tests send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signal {
    /// `SIGKILL`: the process is gone before its next instruction.
    Kill,
    /// `SIGTERM`: the polite request to end.
    Terminate,
    /// `SIGINT`: what Ctrl-C sends.
    Interrupt,
    /// `SIGSTOP`: the process freezes and notices nothing.
    Stop,
    /// `SIGCONT`: a frozen process goes on.
    Continue,
}

impl Signal {
    fn raw(self) -> rustix::process::Signal {
        match self {
            Self::Kill => rustix::process::Signal::KILL,
            Self::Terminate => rustix::process::Signal::TERM,
            Self::Interrupt => rustix::process::Signal::INT,
            Self::Stop => rustix::process::Signal::STOP,
            Self::Continue => rustix::process::Signal::CONT,
        }
    }
}

/// Sends `signal` to `child` unless it has ended.
///
/// Asking first keeps us from signalling a stranger that got the number of a reaped child.
pub(crate) fn send(child: &mut Child, signal: Signal) {
    if matches!(child.try_wait(), Ok(None)) {
        // It may end between the question and the signal: then it is a zombie of ours and the
        // signal goes nowhere.
        let _ended = kill_process(Pid::from_child(child), signal.raw());
    }
}

/// Sends `signal` to the process group that `leader` was started to lead.
///
/// A group outlives its leader, and its number is not given out again while it has members.
pub(crate) fn send_to_group(leader: &Child, signal: Signal) {
    let _nobody_left = kill_process_group(Pid::from_child(leader), signal.raw());
}
