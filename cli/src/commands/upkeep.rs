//! `workers`, `queues` and `stats`: who works, and what waits.

use holdpoint_graph::QueueId;
use holdpoint_producer::{StatsView, WorkerState, WorkerView};
use serde_json::json;

use crate::{args::Queues, context::Context, failure::Stop, place::Access, show, table::Table};

/// `workers`.
pub(crate) async fn workers(context: &Context) -> Result<(), Stop> {
    let producer = context.producer(Access::Existing).await?;
    let workers = producer.workers().await?;
    if context.out.is_json {
        return workers.iter().try_for_each(|worker| context.out.json(worker));
    }
    if workers.is_empty() {
        context.out.hint(format_args!("no workers; {} starts one", context.command("worker")));
    }
    context.out.show(&(), || worker_table(context, &workers))
}

fn worker_table(context: &Context, workers: &[WorkerView]) -> String {
    let paint = context.out.paint;
    let mut table =
        Table::new(["WORKER", "STATE", "BEAT", "HOST", "PID", "RUNS", "GRAPHS", "TROUBLE"]);
    for worker in workers {
        let state = match worker.state {
            WorkerState::Live => paint.green("live"),
            WorkerState::Draining => paint.yellow("draining"),
            WorkerState::Lost => paint.red("lost"),
        };
        let mut graphs: Vec<&str> = worker.graphs.iter().map(|g| g.graph.as_str()).collect();
        graphs.dedup();
        let graphs = match graphs.len() {
            0..=4 => graphs.join(" "),
            more => format!("{more} graphs"),
        };
        table.row([
            worker.worker.to_string(),
            state,
            show::ago(worker.beat_at),
            holdpoint_graph::printable(&worker.host, 30),
            worker.pid.to_string(),
            format!("{}/{}", worker.runs.len(), worker.concurrency),
            graphs,
            holdpoint_graph::printable(worker.trouble.as_deref().unwrap_or_default(), 120),
        ]);
    }
    table.text(paint)
}

/// `queues`.
pub(crate) async fn queues(context: &Context, command: Queues) -> Result<(), Stop> {
    let (queue, is_paused) = match command {
        Queues::List => return queue_list(context).await,
        Queues::Pause { queue } => (QueueId::new(queue)?, true),
        Queues::Resume { queue } => (QueueId::new(queue)?, false),
    };
    let producer = context.producer(Access::Existing).await?;
    producer.pause_queue(&queue, is_paused).await?;
    let done = json!({ "queue": queue, "paused": is_paused });
    let word = if is_paused { "paused" } else { "resumed" };
    context.out.show(&done, || format!("{word} queue {queue}"))
}

async fn queue_list(context: &Context) -> Result<(), Stop> {
    let producer = context.producer(Access::Existing).await?;
    let queues = producer.queues().await?;
    if context.out.is_json {
        return queues.iter().try_for_each(|queue| context.out.json(queue));
    }
    let mut table = Table::new(["QUEUE", "QUEUED", "OLDEST", "PAUSED"]);
    for queue in &queues {
        table.row([
            queue.queue.to_string(),
            queue.queued.to_string(),
            age(queue.oldest_age_s),
            if queue.paused { context.out.paint.yellow("paused") } else { String::new() },
        ]);
    }
    context.out.show(&(), || table.text(context.out.paint))
}

/// `stats`.
pub(crate) async fn stats(context: &Context) -> Result<(), Stop> {
    let producer = context.producer(Access::Existing).await?;
    let stats = producer.stats().await?;
    context.out.show(&stats, || stats_text(context, &stats))
}

fn stats_text(context: &Context, stats: &StatsView) -> String {
    let paint = context.out.paint;
    let counts = stats.counts.iter().filter(|(_, count)| **count > 0);
    let counts = counts.map(|(status, count)| format!("{count} {}", paint.status(status)));
    let counts = counts.collect::<Vec<_>>().join(", ");
    let counts = if counts.is_empty() { "no runs".to_owned() } else { counts };
    let mut text = format!(
        "{counts}\n{} live workers, {} open questions\n",
        stats.workers, stats.open_questions
    );
    let mut table = Table::new(["QUEUE", "GRAPH", "VERSION", "QUEUED", "OLDEST", ""]);
    for lane in &stats.lanes {
        table.row([
            lane.queue.to_string(),
            lane.graph.to_string(),
            lane.fingerprint.as_ref().map_or_else(|| "any".to_owned(), ToString::to_string),
            lane.queued.to_string(),
            age(lane.oldest_age_s),
            if lane.served { String::new() } else { paint.red("no worker serves it") },
        ]);
    }
    text.push_str(&table.text(paint));
    text
}

fn age(seconds: Option<i64>) -> String {
    seconds.map_or_else(|| "-".to_owned(), |seconds| format!("{seconds}s"))
}
