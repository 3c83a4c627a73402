//! `signal`, `approve` and `reject`.

use holdpoint_graph::limits;
use holdpoint_producer::{SignalOptions, SignalOutcome, Signalled, parse_answers};

use crate::{
    args::runs::{Decision, Signal, Target},
    commands::{decide, inbox::Conditions},
    context::{Context, run_id},
    failure::{Failure, Stop},
    input,
    place::Access,
};

/// `signal`: any answer.
pub(crate) async fn signal(context: &Context, args: &Signal) -> Result<(), Stop> {
    let mut options = options(&args.target)?;
    if let Some(text) = &args.answers {
        let bytes_max = limits::ANSWERS_MAX * limits::ANSWER_BYTES_MAX;
        let answers = parse_answers(&input::text_argument("answers", text, bytes_max)?)?;
        return send_all(context, &options.each(answers)).await;
    }
    if let Some(text) = &args.answer {
        // A byte more than the library takes, so that its own limit is the one that is named.
        let answer = input::json_argument("answer", text, limits::ANSWER_BYTES_MAX)?;
        options = options.answer(answer);
    }
    send(context, options).await
}

/// `approve` and `reject`: the answers of a gate.
pub(crate) async fn decide(
    context: &Context,
    args: &Decision,
    is_approval: bool,
) -> Result<(), Stop> {
    if args.all_matching {
        return decide::all(context, args, is_approval).await;
    }
    if !Conditions::new(&args.which, &[])?.is_empty() {
        let text = "conditions go with --all-matching, not with the name of a run";
        return Err(Failure::usage("all_matching", text).into());
    }
    let options = options(&args.target)?;
    let options = if is_approval { options.approve() } else { options.reject() };
    send(context, options).await
}

fn options(target: &Target) -> Result<SignalOptions, Stop> {
    let mut options = match (&target.run, &target.session) {
        (Some(run), _) => SignalOptions::run(run_id(run)?.as_str()),
        (None, session) => SignalOptions::session(session.clone().unwrap_or_default()),
    };
    if let Some(interrupt) = &target.interrupt {
        options = options.interrupt(interrupt);
    }
    if let Some(gate) = &target.gate {
        options = options.gate(gate);
    }
    if let Some(comment) = &target.comment {
        options = options.comment(comment);
    }
    if let Some(key) = &target.key {
        options = options.key(key);
    }
    if let Some(args_hash) = &target.args_hash {
        options = options.args_hash(args_hash);
    }
    options = target.group.iter().fold(options, SignalOptions::group);
    Ok(options.by(who(target.by.as_ref())).from("cli"))
}

/// Who acts: whoever is named, or the user of the system.
pub(crate) fn who(by: Option<&String>) -> String {
    let user = || std::env::var("USER").ok().filter(|user| !user.is_empty());
    by.cloned().or_else(user).unwrap_or_else(|| "cli".to_owned())
}

async fn send(context: &Context, options: SignalOptions) -> Result<(), Stop> {
    let producer = context.producer(Access::Existing).await?;
    let done = producer.signal(&options).await?;
    context.out.show(&done, || human(context, &done))
}

async fn send_all(context: &Context, options: &[SignalOptions]) -> Result<(), Stop> {
    let producer = context.producer(Access::Existing).await?;
    let done = producer.signal_all(options).await?;
    context.out.show(&done, || {
        let lines: Vec<String> = done.iter().map(|one| told_of_several(context, one)).collect();
        lines.join("\n")
    })
}

/// An answer of several, which are told apart by their questions.
fn told_of_several(context: &Context, done: &Signalled) -> String {
    match &done.interrupt {
        Some(interrupt) => format!("{interrupt}: {}", human(context, done)),
        None => human(context, done),
    }
}

/// How an answer that was taken is told.
pub(crate) fn human(context: &Context, done: &Signalled) -> String {
    let run = context.out.paint.bold(done.run.as_str());
    let by = holdpoint_graph::printable(&done.decided_by, 80);
    match done.outcome {
        SignalOutcome::Delivered => format!("answered {run} as {by}"),
        SignalOutcome::Voted => format!("voted on {run} as {by}: it needs more votes"),
        SignalOutcome::Kept => {
            format!("kept for {run} as {by}: the gate takes it when it opens")
        }
    }
}
