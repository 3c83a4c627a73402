//! `graphs`: list, draw, validate.

use std::collections::BTreeSet;

use holdpoint_graph::{
    Code, CompiledGraph, Event, Fingerprint, GraphId, Progress, RunId, nearest, printable,
};
use holdpoint_producer::{GraphView, Producer};
use serde_json::json;

use crate::{
    args::graphs::{Format, Graphs, Show},
    commands::migrate,
    context::{Context, run_id},
    failure::{Failure, Stop},
    place::Access,
    table::Table,
};

/// One of the commands about graphs.
pub(crate) async fn run(context: &Context, command: Graphs) -> Result<(), Stop> {
    match command {
        Graphs::List => list(context).await,
        Graphs::Show(args) => show(context, &args).await,
        Graphs::Validate => validate(context),
        Graphs::Check => migrate::check(context).await,
        Graphs::Migrate(args) => migrate::migrate(context, &args).await,
    }
}

/// The program's own graphs, then those that other workers published.
async fn list(context: &Context) -> Result<(), Stop> {
    let published = match context.producer(Access::Existing).await {
        Ok(producer) => producer.graphs().await?,
        // Without a store there are still the program's own.
        Err(Stop::Failed(failure)) if context.has_graphs() => {
            context.out.hint(format_args!("only this program's: {}", failure.message));
            Vec::new()
        }
        Err(stop) => return Err(stop),
    };
    let is_served = |graph: &CompiledGraph| {
        published.iter().any(|p| p.fingerprint == *graph.fingerprint() && p.served)
    };
    let mut rows: Vec<GraphView> = Vec::new();
    for graph in context.graphs.iter() {
        rows.push(GraphView {
            graph: graph.id().clone(),
            fingerprint: graph.fingerprint().clone(),
            nodes: graph.nodes().count(),
            served: is_served(graph),
        });
    }
    let own: BTreeSet<String> = rows.iter().map(|row| row.fingerprint.to_string()).collect();
    rows.extend(published.into_iter().filter(|p| !own.contains(p.fingerprint.as_str())));
    if context.out.is_json {
        return rows.iter().try_for_each(|row| context.out.json(row));
    }
    let mut table = Table::new(["GRAPH", "VERSION", "NODES", "SERVED", "HERE"]);
    for row in &rows {
        let mark = |is: bool| if is { context.out.paint.green("yes") } else { "-".to_owned() };
        let is_own = own.contains(row.fingerprint.as_str());
        table.row([
            row.graph.to_string(),
            row.fingerprint.to_string(),
            row.nodes.to_string(),
            mark(row.served),
            mark(is_own),
        ]);
    }
    context.out.show(&(), || table.text(context.out.paint))
}

/// Draws a graph, perhaps with a run's position.
async fn show(context: &Context, args: &Show) -> Result<(), Stop> {
    let id = GraphId::new(&args.graph)?;
    let run = args.run.as_ref().map(|run| run_id(run)).transpose()?;
    let format = args.format.unwrap_or(Format::Text);
    let progress = match &run {
        Some(run) => Some(progress(&context.producer(Access::Existing).await?, run).await?),
        None => None,
    };
    if let (Some(run), Some(progress)) = (&run, &progress)
        && progress.graph().is_some_and(|graph| *graph != id)
    {
        let text = format!("run {run} is not of graph {id}");
        return Err(Failure::of(Code::GraphMismatch, text).into());
    }
    let pinned = progress.as_ref().and_then(Progress::fingerprint);
    let Some(graph) = own(context, &id, pinned) else {
        return published(context, &id, pinned, format).await;
    };
    let drawing = match &progress {
        Some(progress) => graph.drawing().at(progress),
        None => graph.drawing(),
    };
    let text = match format {
        Format::Json => return context.out.json(&drawing.to_json()),
        Format::Text => drawing.to_text(),
        Format::Mermaid => drawing.to_mermaid(),
        Format::Dot => drawing.to_dot(),
    };
    context.out.line(text.trim_end())
}

/// State and position of a run, folded from its events.
pub(crate) async fn progress(producer: &Producer, run: &RunId) -> Result<Progress, Stop> {
    let events = producer.events(run, 0).await?;
    let events: Vec<&Event> = events.iter().map(|event| &event.event).collect();
    Progress::fold(events).map_err(|fault| {
        Failure::of(Code::StateCorrupt, format!("run {run} is damaged: {fault}")).into()
    })
}

/// The program's graph in the version that is asked for, else in its newest.
fn own<'a>(
    context: &'a Context,
    id: &GraphId,
    pinned: Option<&Fingerprint>,
) -> Option<&'a CompiledGraph> {
    let versions = context.graphs.iter().filter(|graph| graph.id() == id);
    versions.filter(|graph| pinned.is_none_or(|pin| pin == graph.fingerprint())).last()
}

/// A graph that only other programs have: its drawing is data.
async fn published(
    context: &Context,
    id: &GraphId,
    pinned: Option<&Fingerprint>,
    format: Format,
) -> Result<(), Stop> {
    let producer = context.producer(Access::Existing).await;
    let graphs = match &producer {
        Ok(producer) => producer.store().graphs().await?,
        Err(_) => Vec::new(),
    };
    let fits = |record: &&holdpoint_storage::GraphRecord| {
        record.graph == *id && pinned.is_none_or(|pin| *pin == record.fingerprint)
    };
    match graphs.iter().filter(fits).max_by_key(|record| record.published_at_ms) {
        Some(record) if format == Format::Json => context.out.line(&record.drawing),
        Some(_) => Err(Failure::of(
            Code::UnknownGraph,
            format!("graph {id} belongs to another program, which alone can draw it so"),
        )
        .at("graph")
        .with_fix("--format json shows what its workers published")
        .into()),
        None => {
            let known = context.graphs.iter().map(|graph| graph.id().as_str());
            let known = known.chain(graphs.iter().map(|record| record.graph.as_str()));
            let near = nearest(id.as_str(), known);
            let near = near.map_or_else(String::new, |near| format!(", did you mean {near}?"));
            let text = format!("no graph {id} is known{near}");
            Err(Failure::of(Code::UnknownGraph, text).at("graph").into())
        }
    }
}

/// Every fault and warning of the program's graphs.
fn validate(context: &Context) -> Result<(), Stop> {
    let paint = context.out.paint;
    let mut count = 0;
    let faults = context.faults.iter().map(|all| (all.graph.as_str(), "fault", &all.faults[..]));
    let warnings = context.graphs.iter().map(|g| (g.id().as_str(), "warning", g.warnings()));
    for (graph, level, list) in faults.chain(warnings) {
        for fault in list {
            count += usize::from(level == "fault");
            let row = json!({
                "graph": graph, "level": level, "code": fault.code, "node": fault.node,
                "message": fault.message, "fix": fault.fix,
            });
            context.out.show(&row, || {
                let word = if level == "fault" { paint.red(level) } else { paint.yellow(level) };
                format!("{word}  {}: {fault}", printable(graph, 80))
            })?;
        }
    }
    if count > 0 {
        return Err(Stop::Exit(3));
    }
    context.out.hint(format_args!("{} graphs have no faults", context.graphs.iter().count()));
    Ok(())
}
