//! `gates`: the open questions of all runs, and signed links to them.

use std::path::Path;

use holdpoint_graph::{GraphId, InterruptId, limits, printable};
use holdpoint_producer::{GateFilter, LinkKeys, LinkOptions};
use serde_json::json;

use crate::{
    args::{
        Gates,
        gates::{GatesCommand, MakeLink, Redeem},
    },
    commands::{answer::human, runs::next_page},
    context::{Context, duration, page_size, run_id},
    failure::{Failure, Stop},
    input,
    place::Access,
    show,
};

/// The keys' file is small; a larger one is another file.
const KEYS_BYTES_MAX: u64 = 64 * 1024;

/// Lists questions, or does something with one.
pub(crate) async fn run(context: &Context, args: &Gates) -> Result<(), Stop> {
    match &args.command {
        None => list(context, args).await,
        Some(GatesCommand::Link(args)) => link(context, args).await,
        Some(GatesCommand::Redeem(args)) => redeem(context, args).await,
        Some(GatesCommand::NewKey { id }) => {
            let line = LinkKeys::new_line(id);
            LinkKeys::parse(&line)?;
            context.out.line(line)
        }
    }
}

async fn link(context: &Context, args: &MakeLink) -> Result<(), Stop> {
    let keys = keys(&args.keys.keys)?;
    let life = duration("expires-in", Some(&args.expires_in))?.unwrap_or_default();
    let mut options = LinkOptions::new(&args.by).expires_in(life);
    options = args.group.iter().fold(options, LinkOptions::group);
    options = args.allow.iter().fold(options, LinkOptions::allow);
    let run = run_id(&args.run)?;
    let producer = context.producer(Access::Existing).await?;
    let interrupt = match &args.interrupt {
        Some(interrupt) => InterruptId::new(interrupt)?,
        None => producer.only_question(&run).await?,
    };
    let link = producer.link(&keys, &run, &interrupt, &options).await?;
    context.out.show(&link, || link.token.clone())
}

async fn redeem(context: &Context, args: &Redeem) -> Result<(), Stop> {
    let keys = keys(&args.keys.keys)?;
    let answer = match &args.answer {
        Some(text) => input::json_argument("answer", text, limits::ANSWER_BYTES_MAX)?,
        None => json!({ "approve": args.approve }),
    };
    let producer = context.producer(Access::Existing).await?;
    if args.look {
        let view = producer.read_link(&keys, &args.token).await?;
        return context.out.show(&view, || {
            let (by, until) = (printable(&view.by, 80), view.expires_at);
            let may = match view.allowed.as_slice() {
                [] => "any answer".to_owned(),
                allowed => allowed.join(", "),
            };
            format!("{} of run {}, as {by}: {may}, until {until}", view.interrupt, view.run)
        });
    }
    let done = producer.redeem(&keys, &args.token, answer, args.comment.clone()).await?;
    context.out.show(&done, || human(context, &done))
}

fn keys(path: &Path) -> Result<LinkKeys, Stop> {
    let shown = printable(&path.display().to_string(), 200);
    let no = |why: String| Failure::new("E_USAGE", 2, format!("keys: {shown}: {why}"));
    let size = std::fs::metadata(path).map_err(|error| no(error.to_string()))?.len();
    if size > KEYS_BYTES_MAX {
        return Err(no(format!("has {size} bytes, the limit is {KEYS_BYTES_MAX}")).into());
    }
    let text = std::fs::read_to_string(path).map_err(|error| no(error.to_string()))?;
    Ok(LinkKeys::parse(&text)?)
}

/// Lists them, oldest first.
async fn list(context: &Context, args: &Gates) -> Result<(), Stop> {
    let filter = GateFilter {
        graph: args.graph.as_ref().map(GraphId::new).transpose()?,
        assignee: args.assignee.clone(),
        ..GateFilter::default()
    };
    let limit = page_size(args.limit.as_ref())?;
    let producer = context.producer(Access::Existing).await?;
    let page = producer.gates(&filter, args.after.as_deref(), limit).await?;
    for row in &page.rows {
        context.out.show(row, || {
            let run = context.out.paint.bold(row.run.as_str());
            let question = show::question(row.run.as_str(), &row.open, context);
            format!("{run}  {}\n{question}", row.graph)
        })?;
    }
    if page.rows.is_empty() {
        context.out.hint("no open questions");
    }
    next_page(context, page.next.as_ref())
}
