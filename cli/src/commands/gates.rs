//! `gates`: the open questions of all runs.

use holdpoint_graph::GraphId;
use holdpoint_producer::GateFilter;

use crate::{
    args::Gates,
    commands::runs::next_page,
    context::{Context, page_size},
    failure::Stop,
    place::Access,
    show,
};

/// Lists them, oldest first.
pub(crate) async fn run(context: &Context, args: &Gates) -> Result<(), Stop> {
    let filter = GateFilter {
        graph: args.graph.as_ref().map(GraphId::new).transpose()?,
        assignee: args.assignee.clone(),
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
