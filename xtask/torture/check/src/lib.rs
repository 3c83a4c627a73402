//! Judges a torture run.
//!
//! A run leaves two things behind: the *history*, lines that every process wrote about what it
//! did ([`Recorder`], [`History`]), and what the store holds at the end ([`Dump`]).
//! The checkers are pure functions over the two.
//! Nothing here starts, kills or waits for a process; the harness does.

mod dump;
mod history;
mod recorder;

pub use dump::{Dump, EventDump, RunDump};
pub use history::{History, HistoryError, Line, Op, Phase, fault, mono_ns};
pub use recorder::Recorder;
