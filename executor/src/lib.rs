//! Runs one claimed run against a store: nodes, retries, deadlines, panics, questions, commits.
//!
//! A worker hands claimed runs to [`QueuedExecutor`]; a program without a worker uses [`Runner`].
//! Panics of user code are caught here and become node errors.

mod attempt;
mod config;
mod control;
mod host;
mod journal;
mod queued;
mod resolver;
mod run_loop;
mod runner;
mod sink;
mod stream;
mod time;

pub use config::ExecutorConfig;
pub use control::{Control, Told};
pub use queued::{Claimed, Outcome, QueuedExecutor};
pub use resolver::{GraphResolver, GraphSet, ResolveError, SingleGraphResolver};
pub use runner::{RunState, Runner, RunnerError};
pub use sink::{EventSink, SpanId, SpanKind, Tracer};
pub use stream::{RunStream, StreamEvent, StreamItem};
pub use time::StoreTime;
