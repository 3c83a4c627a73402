//! `graphs check` and `graphs migrate`: what versions do to runs that have begun.

use std::collections::BTreeMap;

use holdpoint_graph::{Code, CompiledGraph, Fingerprint, GraphId, Progress};
use holdpoint_producer::Producer;
use holdpoint_storage::{Cursor, RunHead};
use serde::Serialize;
use serde_json::Value;

use crate::{
    args::graphs::Migrate,
    commands::{answer::who, graphs::progress},
    context::Context,
    failure::{Failure, Stop},
    place::Access,
};

/// What a version would do to a run.
#[derive(Debug, Serialize)]
struct Row {
    run: String,
    graph: String,
    from: Option<String>,
    to: String,
    verdict: Verdict,
    why: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Verdict {
    /// Its version is offered.
    Fine,
    /// Its position exists in the newest version.
    Migrates,
    /// It does not.
    Stranded,
}

/// Judges every run of the program's graphs that has not ended.
pub(crate) async fn check(context: &Context) -> Result<(), Stop> {
    context.insist_on_good_graphs()?;
    let producer = context.producer(Access::Existing).await?;
    let mut newest: BTreeMap<GraphId, &CompiledGraph> = BTreeMap::new();
    for graph in context.graphs.iter() {
        newest.insert(graph.id().clone(), graph);
    }
    let mut is_stranded = false;
    for (id, graph) in newest {
        let offered: Vec<&Fingerprint> = context
            .graphs
            .iter()
            .filter(|version| *version.id() == id)
            .map(CompiledGraph::fingerprint)
            .collect();
        for head in pinned(&producer, &id).await? {
            let is_offered = head.fingerprint.as_ref().is_none_or(|f| offered.contains(&f));
            let (verdict, why) = if is_offered {
                (Verdict::Fine, "this program offers its version".to_owned())
            } else {
                judge(&producer, &head, graph).await?
            };
            is_stranded |= verdict == Verdict::Stranded;
            tell(context, &row(&head, graph, verdict, why))?;
        }
    }
    if is_stranded { Err(Stop::Exit(3)) } else { Ok(()) }
}

/// Pins the runs of one version to another in which their position exists.
pub(crate) async fn migrate(context: &Context, args: &Migrate) -> Result<(), Stop> {
    context.insist_on_good_graphs()?;
    let id = GraphId::new(&args.graph)?;
    let graph = target(context, &id, &args.to)?;
    let from = Fingerprint::from_text(&args.from);
    let producer = context.producer(Access::Existing).await?;
    let by = who(None);
    let mut is_stranded = false;
    let mut count = 0;
    for head in pinned(&producer, &id).await? {
        if head.fingerprint.as_ref() != Some(&from) {
            continue;
        }
        count += 1;
        let (mut verdict, mut why) = judge(&producer, &head, graph).await?;
        if verdict == Verdict::Migrates && !args.dry_run {
            match producer.migrate(&head.run, &from, graph.fingerprint(), &by).await {
                Ok(_) => why = "it is pinned to the new version".to_owned(),
                Err(error) if error.is_retryable() => return Err(error.into()),
                Err(error) => (verdict, why) = (Verdict::Stranded, error.to_string()),
            }
        }
        is_stranded |= verdict == Verdict::Stranded;
        tell(context, &row(&head, graph, verdict, why))?;
    }
    if count == 0 {
        context.out.hint(format_args!("no run of graph {id} is pinned to {from}"));
    }
    if is_stranded { Err(Stop::Exit(3)) } else { Ok(()) }
}

fn target<'a>(context: &'a Context, id: &GraphId, to: &str) -> Result<&'a CompiledGraph, Stop> {
    let versions: Vec<&CompiledGraph> =
        context.graphs.iter().filter(|graph| graph.id() == id).collect();
    let found = versions.iter().find(|graph| graph.fingerprint().as_str() == to);
    found.copied().ok_or_else(|| {
        let known: Vec<&str> = versions.iter().map(|g| g.fingerprint().as_str()).collect();
        if known.is_empty() {
            let text = format!("this program has no graph {id}");
            return Failure::of(Code::UnknownGraph, text).at("graph").into();
        }
        let shown = holdpoint_graph::shown(to, 40);
        let text = format!("this program has {id} as {}, not as {shown}", known.join(", "));
        Failure::of(Code::UnknownVersion, text).at("to").into()
    })
}

async fn pinned(producer: &Producer, id: &GraphId) -> Result<Vec<RunHead>, Stop> {
    let (mut runs, mut after) = (Vec::new(), None::<Cursor>);
    loop {
        let page = producer.store().pinned(id, after.as_ref()).await?;
        runs.extend(page.rows);
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(runs),
        }
    }
}

/// Whether a run's position exists in a version.
async fn judge(
    producer: &Producer,
    head: &RunHead,
    graph: &CompiledGraph,
) -> Result<(Verdict, String), Stop> {
    let progress = progress(producer, &head.run).await?;
    let missing = missing(&progress, graph);
    Ok(match missing.is_empty() {
        true => (Verdict::Migrates, "its position exists in the new version".to_owned()),
        false => {
            let why = format!("the new version has no node {}", missing.join(", "));
            (Verdict::Stranded, why)
        }
    })
}

/// The nodes that the run stands at, or will join at, and that the graph does not have.
fn missing(progress: &Progress, graph: &CompiledGraph) -> Vec<String> {
    let mut wanted: Vec<String> = Vec::new();
    for view in progress.tasks() {
        wanted.push(view.task.node);
    }
    if let Ok(progress) = serde_json::to_value(progress) {
        joins(&progress["flow"], &mut wanted);
    }
    wanted.sort_unstable();
    wanted.dedup();
    wanted.retain(|node| !graph.has_target(node));
    wanted
}

/// The joins of the forks that are open, however deep.
fn joins(flow: &Value, found: &mut Vec<String>) {
    let Some(fork) = flow.get("fork") else { return };
    found.extend(fork["join"].as_str().map(str::to_owned));
    for branch in fork["branches"].as_array().into_iter().flatten() {
        joins(&branch["flow"], found);
    }
}

fn row(head: &RunHead, graph: &CompiledGraph, verdict: Verdict, why: String) -> Row {
    Row {
        run: head.run.to_string(),
        graph: head.graph.to_string(),
        from: head.fingerprint.as_ref().map(ToString::to_string),
        to: graph.fingerprint().to_string(),
        verdict,
        why,
    }
}

fn tell(context: &Context, row: &Row) -> Result<(), Stop> {
    let paint = context.out.paint;
    context.out.show(row, || {
        let verdict = match row.verdict {
            Verdict::Fine => paint.green("fine    "),
            Verdict::Migrates => paint.cyan("migrates"),
            Verdict::Stranded => paint.red("stranded"),
        };
        let why = holdpoint_graph::printable(&row.why, 500);
        format!("{verdict}  {}  {}: {why}", paint.bold(&row.run), row.graph)
    })
}
