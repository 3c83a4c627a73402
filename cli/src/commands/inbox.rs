//! Open questions as a list: which, in what order, and how they are shown.

use holdpoint_graph::{GraphId, limits, printable};
use holdpoint_producer::{GateFilter, GateOrder, GateRow, Producer, ProducerError, check_tag};

use crate::{
    args::gates::{Inbox, Sort, Which},
    commands::{enqueue::tag_pair, runs::next_page},
    context::{Context, duration, page_size},
    failure::Stop,
    place::Access,
    show::{ago, asked, name, votes},
    table::Table,
};

/// Characters of a question in a row.
const QUESTION_CHARS_MAX: usize = 100;

/// The conditions on open questions, as they were typed and as the list takes them.
pub(crate) struct Conditions {
    filter: GateFilter,
    older_than_ms: Option<i64>,
}

impl Conditions {
    /// Reads them; `groups` is typed apart, since it also says for whom somebody speaks.
    pub(crate) fn new(which: &Which, groups: &[String]) -> Result<Self, Stop> {
        let tag = |text: &String| -> Result<String, Stop> {
            let (tag, value) = tag_pair(text)?;
            Ok(check_tag(tag, value)?)
        };
        let older_than = duration("older_than", which.older_than.as_ref())?;
        let in_ms = |age: std::time::Duration| i64::try_from(age.as_millis()).unwrap_or(i64::MAX);
        let filter = GateFilter {
            graph: which.graph.as_ref().map(GraphId::new).transpose()?,
            assignee: which.assignee.clone(),
            groups: groups.to_vec(),
            tag: which.tag.as_ref().map(tag).transpose()?,
            ..GateFilter::default()
        };
        Ok(Self { filter, older_than_ms: older_than.map(in_ms) })
    }

    /// Whether they hold for every question.
    pub(crate) fn is_empty(&self) -> bool {
        self.filter == GateFilter::default() && self.older_than_ms.is_none()
    }

    /// The filter as of now, by the store's clock.
    pub(crate) async fn now(&self, producer: &Producer) -> Result<GateFilter, ProducerError> {
        let mut filter = self.filter.clone();
        if let Some(age_ms) = self.older_than_ms {
            let now_ms = producer.store().now_ms().await?;
            filter.opened_before_ms = Some(now_ms.saturating_sub(age_ms));
        }
        Ok(filter)
    }
}

/// `gates`: one page.
pub(crate) async fn list(context: &Context, args: &Inbox) -> Result<(), Stop> {
    let conditions = Conditions::new(&args.which, &args.group)?;
    let limit = page_size(args.limit.as_ref())?;
    let producer = context.producer(Access::Existing).await?;
    let order = match args.sort {
        Sort::Age => GateOrder::Oldest,
        Sort::Deadline => GateOrder::Deadline,
    };
    let filter = GateFilter { order, ..conditions.now(&producer).await? };
    let page = producer.gates(&filter, args.after.as_deref(), limit).await?;
    print(context, &page.rows)?;
    if page.rows.is_empty() {
        context.out.hint("no open questions");
    } else {
        let (show, pick) = (context.command("runs show RUN"), context.command("gates pick"));
        context.out.hint(format_args!("{show} tells how to answer; {pick} goes through them"));
    }
    next_page(context, page.next.as_ref())
}

/// Prints questions, one a row.
pub(crate) fn print(context: &Context, rows: &[GateRow]) -> Result<(), Stop> {
    if context.out.is_json {
        return rows.iter().try_for_each(|row| context.out.json(row));
    }
    context.out.show(&(), || table(context, rows))
}

/// All questions that fit, oldest first.
pub(crate) async fn all(producer: &Producer, filter: &GateFilter) -> Result<Vec<GateRow>, Stop> {
    let (mut rows, mut after) = (Vec::new(), None::<String>);
    loop {
        let page = producer.gates(filter, after.as_deref(), limits::PAGE_MAX).await?;
        rows.extend(page.rows);
        match page.next {
            Some(next) => after = Some(next),
            None => return Ok(rows),
        }
    }
}

fn table(context: &Context, rows: &[GateRow]) -> String {
    let paint = context.out.paint;
    let mut table = Table::new([
        "RUN", "GRAPH", "GATE", "OPENED", "DUE", "VOTES", "REMINDS", "ASKED", "QUESTION",
    ]);
    for row in rows {
        let open = &row.open;
        table.row([
            row.run.to_string(),
            row.graph.to_string(),
            printable(name(open), 40),
            ago(open.opened_at),
            open.deadline.map(ago).map(|due| paint.yellow(&due)).unwrap_or_default(),
            if open.quorum > 1 { votes(open) } else { String::new() },
            open.reminder.map(ago).unwrap_or_default(),
            printable(&asked(open), 40),
            paint.bold(&printable(&open.question, QUESTION_CHARS_MAX)),
        ]);
    }
    table.without_empty().text(paint)
}
