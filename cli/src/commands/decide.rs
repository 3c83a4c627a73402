//! `approve` and `reject` of all questions that fit.
//!
//! All are read before the first is answered, and each answer is bound to what its question was
//! about when it was read: one that somebody edits in between is refused, not answered unseen.

use std::io::{IsTerminal, stdin};

use holdpoint_graph::{Code, printable};
use holdpoint_producer::{
    GateRow, Producer, ProducerError, SignalOptions, SignalOutcome, Signalled,
};
use serde_json::json;

use crate::{
    args::runs::Decision,
    commands::{
        answer::{human, who},
        inbox::{self, Conditions},
    },
    context::Context,
    failure::{Failure, Stop},
    input,
    place::Access,
};

/// Answers all that fit, or says which those are.
pub(crate) async fn all(context: &Context, args: &Decision, is_approval: bool) -> Result<(), Stop> {
    let word = if is_approval { "approve" } else { "reject" };
    let conditions = Conditions::new(&args.which, &args.target.group)?;
    if conditions.is_empty() && !args.yes && !args.dry_run {
        let text = format!("no condition is given: {word} every open question?");
        let fix = "name a condition, look with --dry-run, or say --yes";
        return Err(Failure::usage("yes", text).with_fix(fix).into());
    }
    let producer = context.producer(Access::Existing).await?;
    let rows = inbox::all(&producer, &conditions.now(&producer).await?).await?;
    let takes = |row: &GateRow| row.open.allowed.iter().any(|allowed| allowed == word);
    let (fit, other): (Vec<GateRow>, Vec<GateRow>) = rows.into_iter().partition(takes);
    if !other.is_empty() {
        context.out.hint(format_args!("{} more cannot be answered with {word}", other.len()));
    }
    if args.dry_run {
        return inbox::print(context, &fit);
    }
    if fit.is_empty() {
        context.out.hint(format_args!("no open questions to {word}"));
        return Ok(());
    }
    let by = who(args.target.by.as_ref());
    if !args.yes {
        confirm(context, &fit, word, &by)?;
    }
    let mut exit = 0;
    for row in &fit {
        let mut options = SignalOptions::run(row.run.as_str())
            .interrupt(row.open.interrupt.as_str())
            .args_hash(&row.open.args_hash)
            .by(&by)
            .from("cli");
        options = args.target.group.iter().fold(options, SignalOptions::group);
        if let Some(comment) = &args.target.comment {
            options = options.comment(comment);
        }
        options = if is_approval { options.approve() } else { options.reject() };
        exit = exit.max(answer(context, &producer, row, &options).await?);
    }
    if exit == 0 { Ok(()) } else { Err(Stop::Exit(exit)) }
}

/// Shows what would be answered to whoever sits at the terminal, and goes on when they say yes.
fn confirm(context: &Context, rows: &[GateRow], word: &str, by: &str) -> Result<(), Stop> {
    let count = match rows.len() {
        1 => "1 question".to_owned(),
        count => format!("{count} questions"),
    };
    if context.out.is_json || !stdin().is_terminal() {
        let text = format!("{count} would be answered, and nobody is here to say yes");
        let fix = "--dry-run lists them, --yes answers them";
        return Err(Failure::usage("yes", text).with_fix(fix).into());
    }
    inbox::print(context, rows)?;
    let prompt = format!("{word} {count} as {by}?");
    match input::yes_or_no(&context.out, &prompt)? {
        Some(true) => Ok(()),
        Some(false) | None => {
            context.out.hint("nothing was answered");
            Err(Stop::Exit(Code::Usage.exit_status()))
        }
    }
}

/// Answers one and says what became of it; gives the exit code for that. A store that does not
/// answer ends the command: the others would wait for it in vain.
async fn answer(
    context: &Context,
    producer: &Producer,
    row: &GateRow,
    options: &SignalOptions,
) -> Result<u8, Stop> {
    let (run, interrupt) = (&row.run, &row.open.interrupt);
    match producer.signal(options).await {
        Ok(done) => {
            let outcome = json!({ "run": run, "interrupt": interrupt, "outcome": done.outcome });
            context.out.show(&outcome, || line(context, row, &done))?;
            Ok(0)
        }
        Err(error) if error.code() == Code::StoreUnavailable => Err(error.into()),
        Err(error) => {
            let (code, message) = (error.code(), shown(&error));
            context.out.say(format_args!("error[{code}]: {run} {interrupt}: {message}"));
            if context.out.is_json {
                let error = json!({ "code": code.as_str(), "message": message });
                let row = json!({ "run": run, "interrupt": interrupt, "error": error });
                context.out.json(&row)?;
            }
            Ok(code.exit_status())
        }
    }
}

/// How an answer that was taken is told when there are several.
pub(crate) fn line(context: &Context, row: &GateRow, done: &Signalled) -> String {
    let question = printable(&row.open.question, 100);
    let mark = match done.outcome {
        SignalOutcome::Delivered => context.out.paint.green("✓"),
        SignalOutcome::Voted | SignalOutcome::Kept => context.out.paint.yellow("·"),
    };
    format!("{mark} {}: {question}", human(context, done))
}

/// Why an answer was refused, on one line.
pub(crate) fn shown(error: &ProducerError) -> String {
    printable(&error.to_string(), 2_000)
}
