//! `audit`: who decided what, when and from where, and whether anybody altered the record.

use holdpoint_graph::{limits, printable};
use holdpoint_producer::{AuditAct, AuditRow, AuditVerdict, Producer};
use serde_json::json;

use crate::{
    args::Audit,
    context::{Context, run_id},
    failure::Stop,
    place::Access,
};

/// Shows the trail of a run, or checks one journal or all.
pub(crate) async fn run(context: &Context, args: &Audit) -> Result<(), Stop> {
    let run = args.run.as_deref().map(run_id).transpose()?;
    let producer = context.producer(Access::Existing).await?;
    match (run, args.verify) {
        (Some(run), false) => {
            let rows = producer.audit(&run).await?;
            for row in &rows {
                context.out.show(row, || line(context, row))?;
            }
            if rows.is_empty() {
                context.out.hint(format!("run {run} has asked nothing"));
            }
            Ok(())
        }
        (Some(run), true) => {
            let mut sum = Sum::default();
            sum.take(context, &producer.verify(&run).await?)?;
            sum.end(context)
        }
        (None, _) => verify_all(context, &producer).await,
    }
}

async fn verify_all(context: &Context, producer: &Producer) -> Result<(), Stop> {
    let (mut sum, mut after) = (Sum::default(), None);
    loop {
        let (verdicts, next) = producer.verify_page(after.as_ref(), limits::PAGE_MAX).await?;
        for verdict in &verdicts {
            sum.take(context, verdict)?;
        }
        match next {
            Some(next) => after = Some(next),
            None => return sum.end(context),
        }
    }
}

/// What was checked so far.
#[derive(Default)]
struct Sum {
    runs: u64,
    events: u64,
    decisions: u64,
    faults: u64,
}

impl Sum {
    fn take(&mut self, context: &Context, verdict: &AuditVerdict) -> Result<(), Stop> {
        self.runs += 1;
        self.events += verdict.events;
        self.decisions += verdict.decisions;
        let Some(fault) = &verdict.fault else { return Ok(()) };
        self.faults += 1;
        context.out.show(verdict, || {
            let paint = context.out.paint;
            let (run, why) = (paint.bold(verdict.run.as_str()), printable(&fault.why, 300));
            format!("{}  {run} event {}: {why}", paint.red("altered"), fault.seq)
        })
    }

    fn end(self, context: &Context) -> Result<(), Stop> {
        let Self { runs, events, decisions, faults } = self;
        let all = json!({
            "runs": runs, "events": events, "decisions": decisions, "faults": faults,
        });
        context.out.show(&all, || {
            let of = format!("{events} events of {runs} runs, {decisions} decisions among them");
            match faults {
                0 => format!("{}  {of}", context.out.paint.green("unaltered")),
                faults => format!("{faults} runs with an altered record; {of} are unaltered"),
            }
        })?;
        if faults == 0 { Ok(()) } else { Err(Stop::Exit(3)) }
    }
}

fn line(context: &Context, row: &AuditRow) -> String {
    let paint = context.out.paint;
    let name = row.gate.as_ref().or(row.node.as_ref()).cloned().unwrap_or_default();
    let about = printable(&name, 80);
    let what = match row.act {
        AuditAct::Opened => paint.yellow(&format!("? {about}")),
        AuditAct::ShownAnew => paint.yellow(&format!("? {about}, shown anew")),
        AuditAct::Reminded => paint.yellow(&format!("reminded of {about}")),
        AuditAct::Voted => paint.cyan(&format!("vote on {about}")),
        AuditAct::Decided => paint.green(&format!("decided {about}")),
        AuditAct::Edited => paint.cyan("state edited"),
    };
    let mut text = format!("{}  {:>4}  {what}", paint.dim(&row.at.to_string()), row.seq);
    let is_question = matches!(row.act, AuditAct::Opened | AuditAct::ShownAnew);
    if let Some(question) = row.question.as_ref().filter(|_| is_question) {
        text.push_str(&format!("\n      {}", printable(question, 300)));
    }
    if let Some(answer) = &row.answer {
        text.push_str(&format!(": {}", printable(&answer.to_string(), 300)));
    }
    if let Some(by) = &row.by {
        text.push_str(&format!(" by {}", printable(by, 80)));
    }
    if let Some(from) = &row.from {
        text.push_str(&format!(" from {}", printable(from, 80)));
    }
    if let Some(comment) = &row.comment {
        text.push_str(&format!("\n      \"{}\"", printable(comment, 300)));
    }
    if let Some(hash) = &row.args_hash {
        text.push_str(&format!("\n      {}", paint.dim(&format!("about {hash}"))));
    }
    text
}
