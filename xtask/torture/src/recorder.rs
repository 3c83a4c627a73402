//! What the processes of the torture write down, each to a file of its own.

use std::{path::PathBuf, sync::OnceLock};

use holdpoint_graph::{NodeContext, NodeError};
use holdpoint_torture_check::{Line, Op, Phase, Recorder};
use holdpoint_worker::child_worker_id;
use serde_json::json;

/// The variable that names the folder of the history.
pub(crate) const ENV_HISTORY: &str = "HOLDPOINT_LEDGER";

/// The variable with the name of a worker's place.
pub(crate) const ENV_SLOT: &str = "HOLDPOINT_TORTURE_SLOT";

/// Writes that this process begins, if it is a worker of the torture.
pub(crate) fn started() {
    of_worker();
}

/// A node at work: it says when it begins, when it is about to return, and when it is dropped or
/// fails before that.
pub(crate) struct Execution {
    ctx: NodeContext,
    is_done: bool,
}

impl Execution {
    /// The node begins.
    pub(crate) fn begin(ctx: &NodeContext) -> Result<Self, NodeError> {
        node(ctx, Phase::Invoke)?;
        Ok(Self { ctx: ctx.clone(), is_done: false })
    }

    /// The node is about to return.
    pub(crate) fn done(mut self) -> Result<(), NodeError> {
        self.is_done = true;
        node(&self.ctx, Phase::Ok)
    }
}

impl Drop for Execution {
    fn drop(&mut self) {
        if !self.is_done {
            // Without the line the checkers take its last word for its end.
            let _ = node(&self.ctx, Phase::Fail);
        }
    }
}

fn node(ctx: &NodeContext, phase: Phase) -> Result<(), NodeError> {
    let Some(recorder) = of_worker() else { return Ok(()) };
    let epoch = i64::try_from(ctx.epoch()).unwrap_or(i64::MAX);
    let line = Line::now(Op::Node, phase, ctx.idempotency_key())
        .run(ctx.run().as_str())
        .node(ctx.node(), ctx.visit().into())
        .attempt(ctx.attempt().into())
        .pair(epoch, ctx.nonce());
    Ok(recorder.write(line)?)
}

/// The recorder of this worker; its first line says which process it is. None outside of a
/// torture, where nobody reads.
fn of_worker() -> Option<&'static Recorder> {
    static RECORDER: OnceLock<Option<Recorder>> = OnceLock::new();
    let open = || {
        let folder = PathBuf::from(std::env::var_os(ENV_HISTORY)?);
        let worker = child_worker_id()?;
        let recorder = Recorder::open(&folder, worker.as_str()).ok()?;
        let line = Line::now(Op::Worker, Phase::Ok, worker.as_str())
            .code("start")
            .detail(json!({ "pid": std::process::id(), "slot": std::env::var(ENV_SLOT).ok() }));
        recorder.write(line).ok()?;
        Some(recorder)
    };
    RECORDER.get_or_init(open).as_ref()
}
