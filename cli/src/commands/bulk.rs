//! Acting on several runs: cancel and redrive, by name or by filter.

use std::time::Duration;

use holdpoint_graph::{RunId, RunStatus, limits};
use holdpoint_producer::{CancelOutcome, Producer, ProducerError, Until};
use holdpoint_storage::RunFilter;
use serde_json::json;

use crate::{
    args::runs::{Cancel, Chosen, Redrive},
    commands::{answer::who, runs::filter},
    context::{Context, duration, number, run_id},
    failure::{Failure, Stop},
    place::Access,
};

/// `runs cancel`.
pub(crate) async fn cancel(context: &Context, args: &Cancel) -> Result<(), Stop> {
    let timeout = duration("timeout", args.timeout.as_ref())?;
    let may_act = |status: RunStatus| !status.is_terminal();
    let chosen = Choice::new(context, &args.chosen, may_act).await?;
    let by = who(None);
    let mut done = Done::new(context, chosen.is_one());
    for run in chosen.runs {
        if chosen.is_dry {
            done.tell(&run.id, run.status.map_or("", RunStatus::as_str))?;
            continue;
        }
        let outcome = match chosen.producer.cancel(&run.id, &by).await {
            Ok(CancelOutcome::Cancelling) if args.wait => {
                waited(&chosen.producer, &run.id, timeout).await
            }
            Ok(outcome) => Ok((outcome.as_str(), 0)),
            Err(error) => Err(error),
        };
        done.note(&run.id, outcome)?;
    }
    done.end()
}

/// The state in which a run ended that was told to.
async fn waited(
    producer: &Producer,
    run: &RunId,
    timeout: Option<Duration>,
) -> Result<(&'static str, u8), ProducerError> {
    let view = producer.wait(run, Until::Terminal, timeout).await?;
    Ok(match view.map(|view| view.status) {
        Some(RunStatus::Cancelled) => (RunStatus::Cancelled.as_str(), 0),
        Some(status) => (status.as_str(), 5),
        None => (CancelOutcome::Cancelling.as_str(), 1),
    })
}

/// `runs redrive`.
pub(crate) async fn redrive(context: &Context, args: &Redrive) -> Result<(), Stop> {
    let max_steps = number::<u64>("max_steps", args.max_steps.as_ref())?;
    let may_act = |status| status == RunStatus::Failed;
    let chosen = Choice::new(context, &args.chosen, may_act).await?;
    let by = who(None);
    let mut done = Done::new(context, chosen.is_one());
    for run in chosen.runs {
        if chosen.is_dry {
            done.tell(&run.id, run.status.map_or("", RunStatus::as_str))?;
            continue;
        }
        let outcome = chosen.producer.redrive(&run.id, max_steps, &by).await;
        done.note(&run.id, outcome.map(|status| (status.as_str(), 0)))?;
    }
    done.end()
}

/// The runs that a command is about.
struct Choice {
    producer: Producer,
    runs: Vec<Run>,
    is_dry: bool,
    is_named: bool,
}

struct Run {
    id: RunId,
    status: Option<RunStatus>,
}

impl Choice {
    async fn new(
        context: &Context,
        args: &Chosen,
        may_act: impl Fn(RunStatus) -> bool,
    ) -> Result<Self, Stop> {
        let filter = filter(&args.filter)?;
        if !args.all_matching && filter != RunFilter::default() {
            let text = "filters go with --all-matching, not with names of runs";
            return Err(Failure::usage("all_matching", text).into());
        }
        let ids = args.run.iter().map(|run| run_id(run)).collect::<Result<Vec<_>, _>>()?;
        let producer = context.producer(Access::Existing).await?;
        let runs = if args.all_matching {
            matching(&producer, &filter, may_act).await?
        } else {
            ids.into_iter().map(|id| Run { id, status: None }).collect()
        };
        Ok(Self { producer, runs, is_dry: args.dry_run, is_named: !args.all_matching })
    }

    /// Whether it is about one named run, whose failure is the command's own.
    fn is_one(&self) -> bool {
        self.is_named && self.runs.len() == 1
    }
}

/// All runs that fit, read before the first of them is touched.
async fn matching(
    producer: &Producer,
    filter: &RunFilter,
    may_act: impl Fn(RunStatus) -> bool,
) -> Result<Vec<Run>, Stop> {
    let (mut runs, mut after) = (Vec::new(), None::<String>);
    loop {
        let page = producer.list(filter, after.as_deref(), limits::PAGE_MAX).await?;
        let fit = page.rows.into_iter().filter(|row| may_act(row.status));
        runs.extend(fit.map(|row| Run { id: row.run, status: Some(row.status) }));
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(runs),
        }
    }
}

/// One line for each run, and the highest exit code of them.
struct Done<'a> {
    context: &'a Context,
    is_one: bool,
    exit: u8,
}

impl<'a> Done<'a> {
    fn new(context: &'a Context, is_one: bool) -> Self {
        Self { context, is_one, exit: 0 }
    }

    fn tell(&self, run: &RunId, status: &str) -> Result<(), Stop> {
        let out = self.context.out;
        let row = json!({ "run": run, "status": status });
        out.show(&row, || format!("{}  {}", out.paint.bold(run.as_str()), out.paint.status(status)))
    }

    fn note(
        &mut self,
        run: &RunId,
        outcome: Result<(&'static str, u8), ProducerError>,
    ) -> Result<(), Stop> {
        match outcome {
            Ok((status, exit)) => {
                self.exit = self.exit.max(exit);
                self.tell(run, status)
            }
            Err(error) if self.is_one => Err(error.into()),
            Err(error) => {
                let code = error.code();
                let message = holdpoint_graph::printable(&error.to_string(), 2_000);
                self.exit = self.exit.max(code.exit_status());
                self.context.out.say(format_args!("error[{code}]: {message}"));
                if self.context.out.is_json {
                    let error = json!({ "code": code.as_str(), "message": message });
                    self.context.out.json(&json!({ "run": run, "error": error }))?;
                }
                Ok(())
            }
        }
    }

    fn end(self) -> Result<(), Stop> {
        if self.exit == 0 { Ok(()) } else { Err(Stop::Exit(self.exit)) }
    }
}
