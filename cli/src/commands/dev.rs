//! `dev`: the program's graphs in this process, and what happens as it happens.

use std::sync::Arc;

use holdpoint_executor::QueuedExecutor;
use holdpoint_storage::Store;
use holdpoint_worker::{Shutdown, Worker};

use crate::{
    args,
    commands::worker::{config, end_on_signals, ended},
    context::Context,
    failure::Stop,
    live::Live,
    place::{self, Access},
};

/// Works until Ctrl-C, or until nothing is left to do when that is asked for.
pub(crate) async fn run(context: Context, args: args::worker::Dev) -> Result<(), Stop> {
    context.insist_on_good_graphs()?;
    let flags = args::worker::Worker {
        concurrency: args.concurrency,
        exit_when_idle: args.exit_when_idle,
        ..args::worker::Worker::default()
    };
    let flags = context.settings.worker(&flags);
    let store = place::open(&context.settings, Access::Create).await?;
    let graphs: Vec<&str> = context.graphs.iter().map(|graph| graph.id().as_str()).collect();
    context.out.hint(format_args!("{}: {}", store.describe(), graphs.join(" ")));
    if let Some(first) = graphs.first().filter(|_| !flags.exit_when_idle) {
        let command = context.command(&format!("enqueue {first}"));
        context.out.hint(format_args!("in another terminal: {command}   (Ctrl-C ends this)"));
    }
    work_here(&context, store, &flags, Shutdown::new()).await
}

/// A worker in this process whose events are printed; signals and `shutdown` end it.
pub(crate) async fn work_here(
    context: &Context,
    store: Arc<dyn Store>,
    flags: &args::worker::Worker,
    shutdown: Shutdown,
) -> Result<(), Stop> {
    let config = config(flags, &context.tuning)?;
    let live = Arc::new(Live::new(context.out, context.asker()));
    let executor = QueuedExecutor::new(Arc::clone(&store), Arc::new(context.graphs.clone()))
        .with_config(Worker::executor_config(&config))
        .with_broker(live);
    let graphs = context.graphs.iter().cloned().collect();
    let upkeep_store = place::upkeep_store(&context.settings, config.lease);
    let mut worker = Worker::new(store, graphs, config)?.with_executor(executor);
    if let Some(factory) = upkeep_store {
        worker = worker.with_upkeep_store(factory);
    }
    let signals = end_on_signals(shutdown.clone())?;
    let end = Box::pin(worker.run(shutdown)).await;
    signals.abort();
    ended(end)
}
