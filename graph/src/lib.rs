//! The pure core of Holdpoint: graphs of steps, their state, and the engine that moves a run.
//!
//! Nothing here does IO, knows a runtime or reads a clock; time and chance are parameters. The
//! executor drives the [`Engine`], stores keep its [`Event`]s, and everybody folds them into a
//! [`Progress`].

mod budget;
mod builder;
mod compile;
mod compiled;
mod context;
mod draw;
mod engine;
mod event;
mod fault;
pub mod fingerprint;
mod functional;
mod gate;
mod id;
pub mod json;
mod life;
pub mod limits;
mod node;
mod patch;
mod payload;
mod progress;
mod reducer;
mod refusal;
mod route;
mod state;
pub mod strict;
mod update;
mod view;

use std::any::Any;

pub use budget::{Budget, Resource, RunLimits};
pub use builder::StateGraph;
pub use compiled::CompiledGraph;
pub use context::{Host, NodeContext, StepStart, TaskInfo};
pub use draw::{Drawing, Mark, Overlay};
pub use engine::{AnswerFault, Engine, Next};
pub use event::{
    Beginning, BranchStart, END, Event, Failure, Fork, Origin, Outcome, Reason, ReasonCode,
    Routing, START, TaskRef,
};
pub use fault::{GraphFault, GraphFaults};
pub use fingerprint::Fingerprint;
pub use functional::{
    FunctionalError, MergeFunc, TaskFunc, fan_out, merge_all, register_entrypoint, register_task,
    task_graph,
};
pub use gate::{
    Answer, Ballot, DEADLINE, Gate, Interrupt, InterruptKind, Question, Reminder, check_answer,
};
pub use id::{
    GraphId, Id, InterruptId, KeyId, Kind, Namespace, QueueId, RequestId, RunId, SessionId,
    WorkerId, kind,
};
pub use life::{End, LeaseTerm, Life, LifeError, Pair, RunStatus};
pub use node::{BoxFuture, Effect, Node, NodeError, NodeFunc, NodeOptions, RetryPolicy};
pub use patch::{Patch, PatchOp};
pub use payload::{CheckpointStart, ENVELOPE_VERSION, Memory, OnStale, RunPayload};
pub use progress::{Call, Counters, EngineError, Progress, Task, TaskStatus, TaskView};
pub use reducer::{
    AppendReducer, MergeMapReducer, Reducer, ReducerFunc, ReplaceReducer, StateSchema,
};
pub use refusal::{Code, Refusal, clip_error, printable, shown};
pub use route::{Answered, Edge, EdgeCondition, Send};
/// The crate behind [`Question::schema_of`], for `#[schemars(crate = "…")]` beside a derive.
#[cfg(feature = "schemars")]
pub use schemars;
pub use state::State;
pub use update::{IntoUpdate, Update};
pub use view::{KeyMapping, KeyView};

/// The known name that is nearest to `name`, if one is near enough to be meant.
#[must_use]
pub fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    compile::nearest(name, known)
}

/// The text of a caught panic.
#[must_use]
pub fn panic_text(panic: &(dyn Any + std::marker::Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
    clip_error(&text.unwrap_or_else(|| "a panic without a text".to_owned()))
}
