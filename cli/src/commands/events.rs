//! `runs events` and `runs history`.

use std::time::Duration;

use holdpoint_graph::RunId;
use holdpoint_producer::{FollowItem, Producer, Until};

use crate::{
    args::runs::Events,
    commands::wait::outcome,
    context::{Context, run_id},
    failure::Stop,
    place::Access,
    show,
    table::Table,
};

/// `runs events`.
pub(crate) async fn run(context: &Context, args: &Events) -> Result<(), Stop> {
    let run = run_id(&args.run)?;
    let producer = context.producer(Access::Existing).await?;
    if args.follow {
        let until = args.until.map_or(Until::Parked, Until::from);
        return follow(context, &producer, &run, args.from, until).await;
    }
    for event in producer.events(&run, args.from).await? {
        context.out.show(&event, || show::event_line(&event, context.out.paint))?;
    }
    Ok(())
}

/// Prints what happens as it happens. A store that is away for a moment costs nothing: the reader
/// goes on where it was.
async fn follow(
    context: &Context,
    producer: &Producer,
    run: &RunId,
    from: u64,
    until: Until,
) -> Result<(), Stop> {
    let mut follow = producer.follow(run, from, until);
    let mut has_said = false;
    while let Some(item) = follow.next().await {
        match item {
            Ok(FollowItem::Event(event)) => {
                context.out.show(&event, || show::event_line(&event, context.out.paint))?;
            }
            Ok(FollowItem::Partial(partial)) => {
                context.out.show(&partial, || show::partial_line(&partial, context.out.paint))?;
            }
            Err(error) if error.is_retryable() => {
                if !std::mem::replace(&mut has_said, true) {
                    tracing::warn!(%error, "the store does not answer; waiting for it");
                }
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
            Err(error) => return Err(error.into()),
        }
    }
    match follow.status() {
        Some(status) => outcome(status),
        None => Ok(()),
    }
}

/// `runs history`.
pub(crate) async fn history(context: &Context, run: &str) -> Result<(), Stop> {
    let run = run_id(run)?;
    let producer = context.producer(Access::Existing).await?;
    let rows = producer.history(&run).await?;
    if context.out.is_json {
        return rows.iter().try_for_each(|row| context.out.json(row));
    }
    let mut table = Table::new(["SEQ", "AT", "EVENT", "POSITION"]);
    for row in &rows {
        table.row([
            row.seq.to_string(),
            row.at.to_string(),
            row.event.to_owned(),
            show::position(&row.position),
        ]);
    }
    context.out.show(&(), || table.text(context.out.paint))
}
