//! Looking at runs: list, show, state, why.

use holdpoint_graph::{Code, GraphId, QueueId, ReasonCode, Refusal, RunStatus, SessionId, nearest};
use holdpoint_producer::{RunRow, check_tag};
use holdpoint_storage::RunFilter;
use serde_json::json;

use crate::{
    args::runs::{Filter, List},
    commands::enqueue::tag_pair,
    context::{Context, page_size, run_id},
    failure::Stop,
    place::Access,
    show,
    table::Table,
};

/// `runs list`.
pub(crate) async fn list(context: &Context, args: &List) -> Result<(), Stop> {
    let filter = filter(&args.filter)?;
    let limit = page_size(args.limit.as_ref())?;
    let producer = context.producer(Access::Existing).await?;
    let page = producer.list(&filter, args.after.as_deref(), limit).await?;
    if context.out.is_json {
        page.rows.iter().try_for_each(|row| context.out.json(row))?;
    } else {
        context.out.show(&(), || table(context, &page.rows))?;
        if page.rows.is_empty() {
            context.out.hint("no runs");
        }
    }
    next_page(context, page.next.as_ref())
}

/// The last line of a page with more.
pub(crate) fn next_page(context: &Context, next: Option<&String>) -> Result<(), Stop> {
    match next {
        Some(next) if context.out.is_json => context.out.json(&json!({ "next": next })),
        Some(next) => {
            context.out.hint(format_args!("more: --after {next}"));
            Ok(())
        }
        None => Ok(()),
    }
}

fn table(context: &Context, rows: &[RunRow]) -> String {
    let paint = context.out.paint;
    let mut table = Table::new(["RUN", "GRAPH", "STATUS", "UPDATED", "SESSION", "TAGS"]);
    for row in rows {
        let status = match &row.reason {
            Some(reason) => {
                format!("{} {}", paint.status(row.status.as_str()), paint.dim(reason.code.as_str()))
            }
            None => paint.status(row.status.as_str()),
        };
        let session = if row.session == row.run.as_str() { "" } else { &row.session };
        let tags = row.tags.iter().map(|(tag, value)| format!("{tag}={value}"));
        let tags = holdpoint_graph::printable(&tags.collect::<Vec<_>>().join(" "), 60);
        table.row([
            row.run.to_string(),
            row.graph.to_string(),
            status,
            show::ago(row.updated_at),
            session.to_owned(),
            tags,
        ]);
    }
    table.text(paint)
}

/// The filter of `runs list` and of what acts on all that match.
pub(crate) fn filter(args: &Filter) -> Result<RunFilter, Stop> {
    let status = |word: &String| {
        RunStatus::from_word(word)
            .ok_or_else(|| unknown("status", word, RunStatus::ALL.map(RunStatus::as_str)))
    };
    let tag = |tag: &String| -> Result<String, Stop> {
        let (tag, value) = tag_pair(tag)?;
        Ok(check_tag(tag, value)?)
    };
    let reason = args
        .reason
        .as_ref()
        .map(|word| ReasonCode::from_word(word).ok_or_else(|| unknown("reason", word, REASONS)));
    Ok(RunFilter {
        statuses: args.status.iter().map(status).collect::<Result<_, _>>()?,
        reason: reason.transpose()?,
        graph: args.graph.as_ref().map(GraphId::new).transpose()?,
        session: args.session.as_ref().map(SessionId::new).transpose()?,
        queue: args.queue.as_ref().map(QueueId::new).transpose()?,
        tags: args.tag.iter().map(tag).collect::<Result<_, _>>()?,
    })
}

const REASONS: [&str; 8] = [
    "node_error",
    "crash_loop",
    "expired",
    "incompatible_graph",
    "undecodable",
    "step_limit",
    "budget_exceeded",
    "write_conflict",
];

fn unknown<const N: usize>(field: &str, word: &str, known: [&str; N]) -> Stop {
    let near = nearest(word, known.into_iter());
    let near = near.map_or_else(String::new, |near| format!(", did you mean {near}?"));
    let shown = holdpoint_graph::shown(word, 40);
    let message = format!("is {shown}{near}; known are {}", known.join(", "));
    Refusal::new(Code::Range, field, message).into()
}

/// `runs show`.
pub(crate) async fn show(context: &Context, run: &str) -> Result<(), Stop> {
    let run = run_id(run)?;
    let producer = context.producer(Access::Existing).await?;
    let view = producer.get(&run).await?;
    context.out.show(&view, || show::card(&view, context))
}

/// `runs state`.
pub(crate) async fn state(context: &Context, run: &str, at: Option<u64>) -> Result<(), Stop> {
    let run = run_id(run)?;
    let producer = context.producer(Access::Existing).await?;
    let state = producer.state_at(&run, at).await?;
    context.out.show(&state, || {
        let pretty = serde_json::to_string_pretty(&state).unwrap_or_default();
        let lines = pretty.lines().map(|line| holdpoint_graph::printable(line, usize::MAX));
        lines.collect::<Vec<_>>().join("\n")
    })
}

/// `runs why`.
pub(crate) async fn why(context: &Context, run: &str) -> Result<(), Stop> {
    let run = run_id(run)?;
    let producer = context.producer(Access::Existing).await?;
    let why = producer.why(&run).await?;
    context.out.show(&why, || {
        let paint = context.out.paint;
        let mut text = format!(
            "{} is {} since {}: {}",
            paint.bold(why.run.as_str()),
            paint.status(why.status.as_str()),
            show::ago(why.since).trim_end_matches(" ago"),
            holdpoint_graph::printable(&why.text, 1_000),
        );
        if !why.fix.is_empty() {
            text.push_str(&format!("\n  {}", holdpoint_graph::printable(&why.fix, 1_000)));
        }
        text
    })
}
