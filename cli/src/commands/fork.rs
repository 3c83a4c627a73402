//! New runs from old ones, and what an operator changes: fork, replay, edit, start-now.

use holdpoint_graph::limits;
use holdpoint_producer::{ForkOptions, Receipt};
use serde_json::json;

use crate::{
    args::runs::{Edit, Fork, Replay},
    commands::answer::who,
    context::{Context, quoted, run_id},
    failure::Stop,
    input,
    place::Access,
};

/// `runs fork`.
pub(crate) async fn fork(context: &Context, args: &Fork) -> Result<(), Stop> {
    let run = run_id(&args.run)?;
    let edit = args.edit.as_ref();
    let edit = edit.map(|text| input::json_argument("edit", text, limits::STATE_BYTES_MAX));
    let options = ForkOptions {
        at_seq: args.at,
        edit: edit.transpose()?,
        session: args.session.clone(),
        ..ForkOptions::default()
    };
    let producer = context.producer(Access::Existing).await?;
    begun(context, &producer.fork(&run, &options).await?, &args.run, args.at)
}

/// `runs replay`.
pub(crate) async fn replay(context: &Context, args: &Replay) -> Result<(), Stop> {
    let run = run_id(&args.run)?;
    let producer = context.producer(Access::Existing).await?;
    begun(context, &producer.replay(&run, args.at).await?, &args.run, args.at)
}

fn begun(context: &Context, receipt: &Receipt, from: &str, at: u64) -> Result<(), Stop> {
    context.out.show(receipt, || {
        let run = context.out.paint.bold(receipt.run.as_str());
        format!("{run} begins where {from} was after event {at}")
    })?;
    let show = context.command(&format!("runs show {}", quoted(receipt.run.as_str())));
    context.out.hint(format_args!("  {show}"));
    Ok(())
}

/// `runs edit`.
pub(crate) async fn edit(context: &Context, args: &Edit) -> Result<(), Stop> {
    let run = run_id(&args.run)?;
    let update = input::json_argument("update", &args.update, limits::STATE_BYTES_MAX)?;
    let producer = context.producer(Access::Existing).await?;
    let by = who(args.by.as_ref());
    let seq = producer.edit(&run, &update, args.if_seq, &by).await?;
    let done = json!({ "run": run, "status": "parked", "seq": seq });
    context.out.show(&done, || format!("edited {run}; its newest event is {seq}"))
}

/// `runs start-now`.
pub(crate) async fn start_now(context: &Context, run: &str) -> Result<(), Stop> {
    let run = run_id(run)?;
    let producer = context.producer(Access::Existing).await?;
    let status = producer.start_now(&run).await?;
    let done = json!({ "run": run, "status": status.as_str() });
    context.out.show(&done, || format!("{run} is {}", context.out.paint.status(status.as_str())))
}
