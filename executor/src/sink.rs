//! Who listens to a run while it executes: sinks for committed records, tracers for spans.

use std::fmt;

use holdpoint_graph::RunId;
use holdpoint_storage::Record;
use serde_json::Value;

/// Hears of records after they are committed, in order. Must not block.
pub trait EventSink: Send + Sync {
    /// A record was committed.
    fn committed(&self, run: &RunId, record: &Record);
    /// A node sent a partial result.
    fn partial(&self, run: &RunId, node: &str, value: &Value);
}

/// What a span is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// One claim of a run: `graph:<id>`.
    Graph,
    /// One attempt of a node: `node:<id>`.
    Node,
}

/// A span that was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct SpanId(pub u64);

/// Records spans. The default is the `tracing` crate's spans.
pub trait Tracer: Send + Sync {
    /// A span starts.
    fn start(&self, session: &str, name: &str, kind: SpanKind) -> SpanId;
    /// It ends; `error` is the text of what went wrong.
    fn end(&self, span: SpanId, error: Option<&str>);
}

/// The listeners of an executor.
#[derive(Clone, Default)]
pub(crate) struct Listeners {
    pub(crate) sinks: Vec<std::sync::Arc<dyn EventSink>>,
    pub(crate) tracer: Option<std::sync::Arc<dyn Tracer>>,
}

impl fmt::Debug for Listeners {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listeners")
            .field("sinks", &self.sinks.len())
            .field("has_tracer", &self.tracer.is_some())
            .finish()
    }
}

impl Listeners {
    pub(crate) fn committed(&self, run: &RunId, record: &Record) {
        for sink in &self.sinks {
            sink.committed(run, record);
        }
    }

    pub(crate) fn partial(&self, run: &RunId, node: &str, value: &Value) {
        for sink in &self.sinks {
            sink.partial(run, node, value);
        }
    }
}
