//! Waiting for a run, and the exit code that tells how it ended.

use std::time::Duration;

use holdpoint_graph::{RunId, RunStatus};
use holdpoint_producer::{Producer, RunView, Until};

use crate::{
    args,
    context::{Context, duration, run_id},
    failure::Stop,
    place::Access,
    show,
};

impl From<args::runs::Until> for Until {
    fn from(until: args::runs::Until) -> Self {
        match until {
            args::runs::Until::Terminal => Self::Terminal,
            args::runs::Until::Parked => Self::Parked,
        }
    }
}

/// `runs wait`.
pub(crate) async fn run(context: &Context, args: &args::runs::Wait) -> Result<(), Stop> {
    let run = run_id(&args.run)?;
    let timeout = duration("timeout", args.timeout.as_ref())?;
    let producer = context.producer(Access::Existing).await?;
    let until = args.until.map_or(Until::Terminal, Until::from);
    wait_and_show(context, &producer, &run, until, timeout).await
}

/// Waits, shows the run, and ends with its outcome. When the time ran out, with 1 and what was
/// seen so far.
pub(crate) async fn wait_and_show(
    context: &Context,
    producer: &Producer,
    run: &RunId,
    until: Until,
    timeout: Option<Duration>,
) -> Result<(), Stop> {
    match producer.wait(run, until, timeout).await? {
        Some(view) => {
            shown(context, &view)?;
            outcome(view.status)
        }
        None => {
            shown(context, &producer.get(run).await?)?;
            context.out.hint("the time ran out; the run goes on");
            Err(Stop::Exit(1))
        }
    }
}

fn shown(context: &Context, view: &RunView) -> Result<(), Stop> {
    context.out.show(view, || show::card(view, context))
}

/// The exit code of a run's outcome: 1 when it failed or was cancelled.
pub(crate) fn outcome(status: RunStatus) -> Result<(), Stop> {
    match status {
        RunStatus::Failed | RunStatus::Cancelled => Err(Stop::Exit(1)),
        RunStatus::Scheduled
        | RunStatus::Queued
        | RunStatus::Running
        | RunStatus::Parked
        | RunStatus::Completed => Ok(()),
    }
}
