//! `enqueue`: one run, or a batch of them.

use holdpoint_graph::{Code, OnStale, Refusal, limits};
use holdpoint_producer::{
    Producer, ProducerError, Receipt, RunRequest, Until, parse_item, parse_time,
};
use holdpoint_storage::IfBusy;
use serde_json::json;

use crate::{
    args::enqueue::{Enqueue, IfBusy as IfBusyArg, OnStale as OnStaleArg},
    commands::wait::wait_and_show,
    context::{Context, duration, number, quoted},
    failure::{Failure, Stop},
    input,
    place::Access,
};

/// Stores what the options ask for.
pub(crate) async fn run(context: &Context, args: &Enqueue) -> Result<(), Stop> {
    match &args.batch {
        Some(path) => batch(context, args, path).await,
        None => one(context, args).await,
    }
}

async fn one(context: &Context, args: &Enqueue) -> Result<(), Stop> {
    let request = request(args)?;
    // Without a store's time: what can be refused is refused before a store is made.
    request.check(0).or_else(ignore_times)?;
    let timeout = duration("timeout", args.timeout.as_ref())?;
    let producer = context.producer(Access::Create).await?;
    let receipt = producer.enqueue(&request).await?;
    context.out.show(&receipt, || human(context, &receipt))?;
    if args.wait {
        context.out.flush()?;
        return wait_and_show(context, &producer, &receipt.run, Until::Parked, timeout).await;
    }
    hint(context, &producer, &receipt).await;
    Ok(())
}

/// Whether a time has passed is only known with the store's time.
fn ignore_times(refusal: Refusal) -> Result<(), Refusal> {
    match refusal.code() {
        Code::DeadlinePast => Ok(()),
        Code::Range if matches!(refusal.field(), "at" | "expires_at" | "deadline_at") => Ok(()),
        _ => Err(refusal),
    }
}

fn request(args: &Enqueue) -> Result<RunRequest, Stop> {
    let mut request = RunRequest::new(args.graph.clone().unwrap_or_default());
    if let Some(text) = &args.input {
        request = request.input(input::json_argument("input", text, limits::PAYLOAD_BYTES_MAX)?);
    }
    if let Some(session) = &args.session {
        request = request.session(session);
    }
    if let Some(run) = &args.run {
        request = request.run(run);
    }
    if let Some(key) = &args.key {
        request = request.key(key);
    }
    if let Some(queue) = &args.queue {
        request = request.queue(queue);
    }
    if let Some(priority) = number::<i64>("priority", args.priority.as_ref())? {
        request = request.priority(priority);
    }
    if let Some(max_steps) = number("max_steps", args.max_steps.as_ref())? {
        request = request.max_steps(max_steps);
    }
    if let Some(steps) = number("budget_steps", args.budget_steps.as_ref())? {
        request = request.budget_steps(steps);
    }
    for tag in &args.tag {
        let (tag, value) = tag_pair(tag)?;
        request = request.tag(tag, value);
    }
    if args.allow_unknown {
        request = request.allow_unknown();
    }
    times(request, args)
}

fn times(mut request: RunRequest, args: &Enqueue) -> Result<RunRequest, Stop> {
    if let Some(delay) = duration("delay", args.delay.as_ref())? {
        request = request.delay(delay);
    }
    if let Some(at) = &args.at {
        request = request.at_ms(parse_time("at", at)?);
    }
    if let Some(after) = duration("expires_in", args.expires_in.as_ref())? {
        request = request.expires_in(after);
    }
    if let Some(after) = duration("deadline", args.deadline.as_ref())? {
        request = request.deadline_in(after);
    }
    if let Some(after) = duration("stale_after", args.stale_after.as_ref())? {
        request = request.stale_after(after);
    }
    if let Some(time) = duration("budget_time", args.budget_time.as_ref())? {
        request = request.budget_time(time);
    }
    if let Some(on_stale) = args.on_stale {
        request = request.on_stale(match on_stale {
            OnStaleArg::Resume => OnStale::Resume,
            OnStaleArg::Ask => OnStale::Ask,
            OnStaleArg::Cancel => OnStale::Cancel,
        });
    }
    if let Some(if_busy) = args.if_busy {
        request = request.if_busy(match if_busy {
            IfBusyArg::Enqueue => IfBusy::Enqueue,
            IfBusyArg::Reject => IfBusy::Reject,
            IfBusyArg::Interrupt => IfBusy::Interrupt,
            IfBusyArg::Rollback => IfBusy::Rollback,
        });
    }
    Ok(request)
}

/// Splits `key=value`.
pub(crate) fn tag_pair(tag: &str) -> Result<(&str, &str), Stop> {
    tag.split_once('=').ok_or_else(|| {
        let shown = holdpoint_graph::shown(tag, 40);
        Failure::usage("tag", format!("tag is {shown}, key=value was expected")).into()
    })
}

fn human(context: &Context, receipt: &Receipt) -> String {
    let paint = context.out.paint;
    let verb = if receipt.created { "enqueued" } else { "is there already:" };
    format!(
        "{verb} {} ({}, {}, {})",
        paint.bold(receipt.run.as_str()),
        receipt.graph,
        paint.status(receipt.status.as_str()),
        receipt.durability.as_str(),
    )
}

/// Says how to look at the run, and when nobody is there to run it.
async fn hint(context: &Context, producer: &Producer, receipt: &Receipt) {
    if context.out.is_json {
        return;
    }
    let show = context.command(&format!("runs show {}", quoted(receipt.run.as_str())));
    context.out.hint(format_args!("  {show}"));
    if producer.store().workers().await.is_ok_and(|workers| workers.is_empty()) {
        let worker = context.command("worker");
        context.out.hint(format_args!("  no worker is there yet: {worker}"));
    }
}

async fn batch(context: &Context, args: &Enqueue, path: &str) -> Result<(), Stop> {
    let lines = input::batch_lines(path)?;
    let mut verdicts: Vec<Option<ProducerError>> = Vec::with_capacity(lines.len());
    let mut requests = Vec::with_capacity(lines.len());
    for (number, line) in &lines {
        match parse_item(line) {
            Ok(request) if args.allow_unknown => requests.push(request.allow_unknown()),
            Ok(request) => requests.push(request),
            Err(refusal) if args.partial => {
                verdicts.push(Some(refusal.into()));
                continue;
            }
            Err(refusal) => return Err(at_line(*number, refusal.into())),
        }
        verdicts.push(None);
    }
    let producer = context.producer(Access::Create).await?;
    let stored = producer.enqueue_batch(&requests, args.partial).await.map_err(|error| {
        let line = error.index.and_then(|index| lines.get(index)).map(|(number, _)| *number);
        let stop = match line {
            Some(line) => at_line(line, (*error.error).into()),
            None => (*error.error).into(),
        };
        told_of_stored(stop, error.stored)
    })?;
    report(context, &lines, verdicts, stored)
}

fn at_line(line: usize, stop: Stop) -> Stop {
    match stop {
        Stop::Failed(mut failure) => {
            let is_whole = failure.field.is_empty();
            let link = if is_whole { "" } else { ":" };
            failure.message = format!("line {line}{link} {}", failure.message);
            if is_whole {
                failure.field = "batch".to_owned();
            }
            Stop::Failed(failure)
        }
        Stop::Exit(_) | Stop::ClosedPipe => stop,
    }
}

fn told_of_stored(stop: Stop, stored: usize) -> Stop {
    match stop {
        Stop::Failed(failure) if stored > 0 => (*failure)
            .with_fix(format!(
                "{stored} runs before it are stored; with keys or run ids a repeat completes them"
            ))
            .into(),
        Stop::Failed(_) | Stop::Exit(_) | Stop::ClosedPipe => stop,
    }
}

/// One line for each item, in the order of the file; the highest exit code of the bad ones.
fn report(
    context: &Context,
    lines: &[(usize, Vec<u8>)],
    verdicts: Vec<Option<ProducerError>>,
    stored: Vec<Result<Receipt, ProducerError>>,
) -> Result<(), Stop> {
    let mut stored = stored.into_iter();
    let (mut exit, mut good, mut known) = (0, 0, 0);
    for ((number, _), verdict) in lines.iter().zip(verdicts) {
        let verdict = match verdict {
            Some(error) => Err(error),
            None => stored.next().expect("each good line has an answer"),
        };
        match verdict {
            Ok(receipt) => {
                good += 1;
                known += usize::from(!receipt.created);
                if context.out.is_json {
                    context.out.json(&receipt)?;
                }
            }
            Err(error) => {
                exit = exit.max(error.code().exit_status());
                bad_line(context, *number, &error)?;
            }
        }
    }
    if !context.out.is_json {
        let again = if known > 0 { format!(", {known} were there already") } else { String::new() };
        context.out.line(format_args!("{good} of {} runs are stored{again}", lines.len()))?;
    }
    if exit == 0 { Ok(()) } else { Err(Stop::Exit(exit)) }
}

fn bad_line(context: &Context, line: usize, error: &ProducerError) -> Result<(), Stop> {
    let message = holdpoint_graph::printable(&error.to_string(), 2_000);
    let code = error.code();
    context.out.say(format_args!("error[{code}]: line {line}: {message}"));
    if context.out.is_json {
        let error = json!({ "code": code.as_str(), "message": message, "field": error.field() });
        context.out.json(&json!({ "line": line, "error": error }))?;
    }
    Ok(())
}
