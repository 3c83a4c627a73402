//! Holdpoint runs graphs of steps durably on a work queue, and parks the ones that need a person.
//!
//! A graph is nodes over a JSON state. A run is one request to execute it: each finished node is
//! committed in one atomic write before the next one starts, so a worker that dies loses at most
//! the node it was in. A gate or a question parks the run without holding a worker, until
//! somebody's answer lets it go on.
//!
//! ```
//! use std::sync::Arc;
//!
//! use holdpoint::{
//!     Location, Namespace, NodeContext, NodeError, Runner, SessionId, SqliteConfig, SqliteStore,
//!     State, StateGraph, Update,
//! };
//!
//! async fn trim(_: NodeContext, state: State) -> Result<Update, NodeError> {
//!     let name: String = state.read("name")?;
//!     Ok(Update::new().set("name", name.trim()))
//! }
//!
//! async fn greet(_: NodeContext, state: State) -> Result<Update, NodeError> {
//!     let name: String = state.read("name")?;
//!     Ok(Update::new().set("greeting", format!("hello {name}")))
//! }
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let graph = StateGraph::new("hello")
//!     .add_node("trim", trim)
//!     .add_node("greet", greet)
//!     .add_edge("trim", "greet")
//!     .set_entry_point("trim")
//!     .set_finish_point("greet")
//!     .compile()?;
//! let config = SqliteConfig::new(Location::Memory, Namespace::new("example")?);
//! let store = Arc::new(SqliteStore::open(config).await?);
//! let ended = Runner::new(graph, store)
//!     .run(SessionId::new("first")?, State::new().with("name", " Ann "))
//!     .await?;
//! assert_eq!(ended.state.get("greeting"), Some(&"hello Ann".into()));
//! # Ok(())
//! # }
//! # tokio::runtime::Runtime::new().unwrap().block_on(example()).unwrap();
//! ```
//!
//! The same graph behind the whole command line, with a durable store and any number of workers:
//! [`App`]. From a program that only brings work: [`Producer`]. In a service of your own:
//! [`Worker`], or [`QueuedExecutor`] under a queue of your own.
//!
//! | to | use |
//! | --- | --- |
//! | describe work | [`StateGraph`], [`NodeOptions`], [`Gate`], [`Question`], [`Send`] |
//! | do work in a node | [`NodeContext`]: steps, asks, sleeps, partial results |
//! | bring work and answers | [`Producer`], [`RunRequest`], [`SignalOptions`] |
//! | run it | [`App`], [`Worker`], [`Runner`] |
//! | keep it | [`SqliteStore`], [`RedisStore`], or an implementation of [`Store`] |

pub use holdpoint_cli::{App, Desk, IntoGraph};
pub use holdpoint_executor::{
    EventSink, ExecutorConfig, GraphResolver, GraphSet, QueuedExecutor, ResolveError, RunState,
    RunStream, Runner, RunnerError, SingleGraphResolver, SpanId, SpanKind, StreamEvent, StreamItem,
    Tracer,
};
#[cfg(feature = "schemars")]
pub use holdpoint_graph::schemars;
pub use holdpoint_graph::{
    Answer, Answered, AppendReducer, BoxFuture, Budget, Code, CompiledGraph, Drawing, END, Edge,
    EdgeCondition, Effect, Event, Fingerprint, FunctionalError, Gate, GraphFault, GraphFaults,
    GraphId, Interrupt, InterruptId, InterruptKind, IntoUpdate, KeyMapping, Memory,
    MergeMapReducer, Namespace, NodeContext, NodeError, NodeOptions, OnStale, Progress, Question,
    QueueId, Reducer, ReducerFunc, Refusal, ReplaceReducer, Resource, RetryPolicy, RunId,
    RunPayload, RunStatus, START, Send, SessionId, State, StateGraph, StateSchema, Update,
    WorkerId, fan_out, merge_all, register_entrypoint, register_task, task_graph,
};
pub use holdpoint_producer::{
    AuditAct, AuditFault, AuditRow, AuditVerdict, CancelOutcome, Decision, EventView, Fate, Follow,
    FollowItem, ForkOptions, GateFilter, GateOrder, GateRow, InterruptView, Link, LinkKeys,
    LinkOptions, LinkView, PartialView, PositionView, Producer, ProducerError, Receipt, Rows,
    RunRequest, RunRow, RunView, SignalOptions, SignalOutcome, Signalled, Timestamp, Until,
    VoteView, Why, format_time, parse_duration, parse_time,
};
pub use holdpoint_storage::{
    Clock, Durability, IfBusy, QuestionFilter, Random, RunFilter, Store, StoreError, SystemClock,
};
pub use holdpoint_storage_redis::{RedisConfig, RedisStore};
pub use holdpoint_storage_sqlite::{Location, SqliteConfig, SqliteStore, Synchronous};
pub use holdpoint_worker::{Health, HealthReport, Shutdown, Worker, WorkerConfig, WorkerEnd};

/// The program of the README, compiled as a doc test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
#[derive(Debug)]
pub struct Readme;

/// The declaration of `docs/gates.md`, compiled as a doc test.
#[cfg(doctest)]
#[doc = include_str!("../docs/gates.md")]
#[derive(Debug)]
pub struct GatesPage;
