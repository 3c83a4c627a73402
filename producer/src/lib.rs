//! For whoever brings work to Holdpoint and looks after it: enqueue, signal, cancel, get, wait,
//! follow. Used by the command line and by programs alike; it starts no node.

mod answer;
mod attempts;
mod audit;
mod check;
mod control;
mod deliver;
mod enqueue;
mod envelope;
mod error;
mod events;
mod follow;
mod fork;
mod journal;
mod link;
mod list;
mod producer;
mod questions;
mod request;
mod sessions;
mod signal;
mod stats;
mod time;
mod view;
mod why;

pub use answer::SignalOptions;
pub use attempts::{Attempt, AttemptEnd};
pub use audit::{AuditAct, AuditFault, AuditRow, AuditVerdict};
pub use check::check_tag;
pub use control::CancelOutcome;
pub use enqueue::{BatchError, Receipt};
pub use envelope::{parse_if_busy, parse_item, parse_on_stale};
pub use error::{Decision, ProducerError};
pub use events::{CheckpointView, EventView, PartialView};
pub use follow::{Follow, FollowItem};
pub use fork::{ForkOptions, Resumed};
pub use link::{Link, LinkKeys, LinkOptions, LinkView};
pub use list::{GateFilter, GateRow, Rows, RunRow};
pub use producer::Producer;
pub use request::RunRequest;
pub use sessions::SessionView;
pub use signal::{SignalOutcome, Signalled};
pub use stats::{GraphView, LaneView, QueueView, ServedView, StatsView, WorkerState, WorkerView};
pub use time::{Timestamp, format_time, parse_duration, parse_time};
pub use view::{CountersView, InterruptView, PositionView, ReasonView, RunView, Until, VoteView};
pub use why::{Cause, Why};
