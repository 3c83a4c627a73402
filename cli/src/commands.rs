//! The commands: one file for each, or for a few that belong together.

mod answer;
mod audit;
mod bulk;
mod decide;
mod dev;
mod doctor;
mod enqueue;
mod events;
mod fork;
mod gates;
mod graphs;
mod inbox;
mod migrate;
mod pick;
mod repair;
mod runs;
mod sessions;
mod upkeep;
mod wait;
mod watch;
mod worker;

use holdpoint_graph::BoxFuture;

pub(crate) use answer::human;
pub(crate) use dev::work_here;
pub(crate) use inbox::all as open_questions;

use crate::{
    args::{Command, runs::Runs},
    context::{Context, block_on, block_on_threads},
    desk::Desk,
    failure::Stop,
    logs,
    place::Access,
};

/// Runs one command to its end.
pub(crate) fn run(command: Command, context: Context) -> Result<(), Stop> {
    match command {
        Command::Worker(args) => worker::run(context, &args),
        Command::Dev(args) => {
            logs::start(&context, "info")?;
            block_on_threads(dev::run(context, args))
        }
        command @ (Command::Enqueue(_)
        | Command::Runs(_)
        | Command::Signal(_)
        | Command::Approve(_)
        | Command::Reject(_)
        | Command::Gates(_)
        | Command::Audit(_)
        | Command::Sessions(_)
        | Command::Graphs(_)
        | Command::Workers
        | Command::Queues(_)
        | Command::Stats
        | Command::Doctor(_)) => {
            logs::start(&context, "warn")?;
            block_on(Box::pin(one_shot(command, context)))
        }
    }
}

/// Runs what the program does without a command.
pub(crate) fn default(
    context: Context,
    action: impl FnOnce(Desk) -> BoxFuture<'static, anyhow::Result<()>>,
) -> Result<(), Stop> {
    logs::start(&context, "warn")?;
    block_on_threads(async {
        context.insist_on_good_graphs()?;
        let producer = context.producer(Access::Create).await?;
        action(Desk::new(context, producer)).await.map_err(crate::desk::stop)
    })
}

async fn one_shot(command: Command, context: Context) -> Result<(), Stop> {
    match command {
        Command::Worker(_) | Command::Dev(_) => unreachable!("they are no one-shot commands"),
        Command::Enqueue(args) => enqueue::run(&context, &args).await,
        Command::Runs(args) => runs(&context, args).await,
        Command::Signal(args) => answer::signal(&context, &args).await,
        Command::Approve(args) => answer::decide(&context, &args, true).await,
        Command::Reject(args) => answer::decide(&context, &args, false).await,
        Command::Gates(args) => gates::run(&context, &args).await,
        Command::Audit(args) => audit::run(&context, &args).await,
        Command::Sessions(args) => sessions::run(&context, args).await,
        Command::Graphs(args) => graphs::run(&context, args).await,
        Command::Workers => upkeep::workers(&context).await,
        Command::Queues(args) => upkeep::queues(&context, args).await,
        Command::Stats => upkeep::stats(&context).await,
        Command::Doctor(args) if args.repair => repair::run(&context, &args).await,
        Command::Doctor(_) => doctor::run(&context).await,
    }
}

async fn runs(context: &Context, command: Runs) -> Result<(), Stop> {
    match command {
        Runs::List(args) => runs::list(context, &args).await,
        Runs::Show { run } => runs::show(context, &run).await,
        Runs::Why { run } => runs::why(context, &run).await,
        Runs::Wait(args) => wait::run(context, &args).await,
        Runs::Events(args) => events::run(context, &args).await,
        Runs::History { run } => events::history(context, &run).await,
        Runs::State { run, at } => runs::state(context, &run, at).await,
        Runs::Cancel(args) => bulk::cancel(context, &args).await,
        Runs::Redrive(args) => bulk::redrive(context, &args).await,
        Runs::Fork(args) => fork::fork(context, &args).await,
        Runs::Replay(args) => fork::replay(context, &args).await,
        Runs::Edit(args) => fork::edit(context, &args).await,
        Runs::StartNow { run } => fork::start_now(context, &run).await,
    }
}
