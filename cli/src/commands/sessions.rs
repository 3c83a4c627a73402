//! `sessions`: the lineages that runs belong to.

use holdpoint_graph::SessionId;
use holdpoint_producer::SessionView;
use serde_json::json;

use crate::{
    args::Sessions,
    commands::{answer::who, runs::next_page},
    context::{Context, page_size},
    failure::Stop,
    place::Access,
    table::Table,
};

/// Lists, shows or deletes.
pub(crate) async fn run(context: &Context, command: Sessions) -> Result<(), Stop> {
    match command {
        Sessions::List { limit, after } => {
            let limit = page_size(limit.as_ref())?;
            let producer = context.producer(Access::Existing).await?;
            let page = producer.sessions(after.as_deref(), limit).await?;
            if context.out.is_json {
                page.rows.iter().try_for_each(|row| context.out.json(row))?;
            } else {
                context.out.show(&(), || table(context, &page.rows))?;
            }
            next_page(context, page.next.as_ref())
        }
        Sessions::Show { session } => {
            let session = SessionId::new(session)?;
            let producer = context.producer(Access::Existing).await?;
            let view = producer.session(&session).await?;
            context.out.show(&view, || table(context, std::slice::from_ref(&view)))
        }
        Sessions::Delete { session, cancel } => {
            let session = SessionId::new(session)?;
            let producer = context.producer(Access::Existing).await?;
            let by = who(None);
            producer.delete_session(&session, cancel.then_some(by.as_str())).await?;
            let done = json!({ "session": session, "deleted": true });
            context.out.show(&done, || format!("deleted session {session}"))
        }
    }
}

fn table(context: &Context, rows: &[SessionView]) -> String {
    let mut table = Table::new(["SESSION", "GRAPH", "ACTIVE", "LAST", "WAITING", "RUNS"]);
    for row in rows {
        let id = |run: &Option<holdpoint_graph::RunId>| {
            run.as_ref().map_or_else(|| "-".to_owned(), ToString::to_string)
        };
        table.row([
            row.session.to_string(),
            row.graph.to_string(),
            id(&row.active_run),
            id(&row.last_run),
            row.waiting.len().to_string(),
            row.runs.to_string(),
        ]);
    }
    table.text(context.out.paint)
}
