//! Judges a torture run.
//!
//! A run leaves two things behind: the *history*, lines that every process wrote about what it
//! did ([`Recorder`], [`History`]), and what the store holds at the end ([`Dump`]).
//! [`check`] holds the one against the other; its checkers are pure functions, one for each
//! promise, and the documentation of each says what it shows and what it cannot show.
//! [`Report`] is the table of figures with their targets.
//! Nothing here starts, kills or waits for a process; the harness does. [`Shim`] is its hand on the
//! library that makes power cuts.

mod canary;
mod cancels;
mod count;
mod dump;
mod effects;
mod facts;
mod fencing;
mod findings;
pub mod history;
mod liveness;
mod nodes;
mod power;
mod queue;
mod recorder;
mod recovery;
mod report;
mod signals;
mod steals;
mod stored;
#[cfg(test)]
mod testing;

pub use canary::Canary;
pub use cancels::Cancels;
pub use count::{Count, Samples};
pub use dump::{Dump, EventDump, RunDump};
pub use effects::{Effects, effect_detail};
pub use fencing::Fencing;
pub use findings::{Extra, Findings, Injected, check};
pub use history::{History, HistoryError, Line, Op, Phase, fault, mono_ns};
pub use liveness::Liveness;
pub use nodes::Nodes;
pub use power::{Failure, Shim, Tail, Taken};
pub use queue::TotalQueue;
pub use recorder::Recorder;
pub use recovery::Recovery;
pub use report::{Report, Row, Targets};
pub use signals::Signals;
pub use steals::Steals;
pub use stored::Stored;
