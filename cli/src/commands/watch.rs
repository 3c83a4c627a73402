//! `gates watch`: open questions, and what becomes of them, as it happens.
//!
//! Once a second it reads the newest page of the list, and one older page in turn when there are
//! more: all of it for up to 200 questions, and never more than two pages however many there are.

use std::{future::Future, time::Duration};

use holdpoint_graph::{limits, printable};
use holdpoint_producer::{Fate, GateRow, Producer, ProducerError, Rows, Timestamp};
use holdpoint_storage::{Clock, SystemClock};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

use crate::{
    args::gates::Watch,
    commands::inbox::Conditions,
    context::Context,
    failure::Stop,
    place::Access,
    show::{ago, asked, name},
    watched::{News, Page, Watched},
};

/// The pause between two looks.
const PAUSE: Duration = Duration::from_secs(1);

/// Watches until somebody ends it.
pub(crate) async fn run(context: &Context, args: &Watch) -> Result<(), Stop> {
    let conditions = Conditions::new(&args.which, &args.group)?;
    let producer = context.producer(Access::Existing).await?;
    let mut watcher = Watcher {
        context,
        producer,
        conditions,
        pages: vec![None],
        turn: 0,
        watched: Watched::default(),
    };
    tokio::select! {
        ended = watcher.watch() => ended,
        () = told_to_end() => Ok(()),
    }
}

/// Waits for Ctrl-C or a polite signal. Where signals cannot be watched it waits forever, and they
/// end the process.
pub(crate) fn told_to_end() -> impl Future<Output = ()> {
    let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
    let mut signals: Vec<_> = kinds.into_iter().filter_map(|kind| signal(kind).ok()).collect();
    std::future::poll_fn(move |task| {
        let is_told = signals.iter_mut().any(|signal| signal.poll_recv(task).is_ready());
        if is_told { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
}

struct Watcher<'a> {
    context: &'a Context,
    producer: Producer,
    conditions: Conditions,
    /// Where the pages begin; at the last the newest questions appear.
    pages: Vec<Page>,
    turn: usize,
    watched: Watched,
}

impl Watcher<'_> {
    async fn watch(&mut self) -> Result<(), Stop> {
        let mut has_said = false;
        loop {
            match self.look().await {
                Ok(()) => has_said = false,
                Err(Look::Failed(error)) if error.is_retryable() => {
                    if !std::mem::replace(&mut has_said, true) {
                        tracing::warn!(%error, "the store does not answer; waiting for it");
                    }
                }
                Err(Look::Failed(error)) => return Err(error.into()),
                Err(Look::Stopped(stop)) => return Err(stop),
            }
            tokio::time::sleep(PAUSE).await;
        }
    }

    async fn look(&mut self) -> Result<(), Look> {
        let older = self.pages.len() - 1;
        if older > 0 {
            self.turn = (self.turn + 1) % older;
            if let Some(page) = self.pages.get(self.turn).cloned() {
                self.read(&page).await?;
            }
        }
        while let Some(page) = self.pages.last().cloned() {
            match self.read(&page).await? {
                Some(next) => self.pages.push(Some(next)),
                None => break,
            }
        }
        let newest = self.pages.last().cloned();
        let watched = &self.watched;
        self.pages.retain(|page| Some(page) == newest.as_ref() || watched.is_on(page));
        Ok(())
    }

    /// Reads one page and tells what is new; gives where the next one begins.
    async fn read(&mut self, page: &Page) -> Result<Option<String>, Look> {
        let filter = self.conditions.now(&self.producer).await?;
        let Rows { rows, next } =
            self.producer.gates(&filter, page.as_deref(), limits::PAGE_MAX).await?;
        for (row, news) in self.watched.see(page, &rows) {
            self.tell(&row, &news)?;
        }
        // A page that the store had no time to fill does not say what is missing.
        if next.is_none() || rows.len() == limits::PAGE_MAX {
            for key in self.watched.missing(page, &rows) {
                let fate = self.producer.fate(&key.0, &key.1).await?;
                if let Some((row, news)) = self.watched.end(&key, fate) {
                    self.tell(&row, &news)?;
                }
            }
        }
        Ok(next)
    }

    fn tell(&self, row: &GateRow, news: &News) -> Result<(), Stop> {
        let now = Timestamp(SystemClock.wall_ms());
        let at = match news {
            News::Opened => row.open.opened_at,
            News::Voted(vote) => vote.at,
            News::Ended(Fate::Decided(decision)) => Timestamp(decision.at_ms),
            News::Reminded { .. } | News::ShownAnew | News::Ended(_) => now,
        };
        self.context.out.show(&document(row, news, at), || self.line(row, news, at))
    }

    fn line(&self, row: &GateRow, news: &News, at: Timestamp) -> String {
        let (paint, open) = (self.context.out.paint, &row.open);
        let text = match news {
            News::Opened => {
                let mut text = format!("? {}: {}", name(open), open.question);
                let asked = asked(open);
                if !asked.is_empty() {
                    text.push_str(&format!("  asked of {asked}"));
                }
                if let Some(deadline) = open.deadline {
                    text.push_str(&format!("  answered by itself {}", ago(deadline)));
                }
                paint.yellow(&printable(&text, 500))
            }
            News::Reminded { also } if also.is_empty() => paint.yellow("reminded"),
            News::Reminded { also } => {
                paint.yellow(&printable(&format!("reminded, asked too: {}", also.join(", ")), 300))
            }
            News::Voted(vote) => {
                paint.cyan(&printable(&format!("vote {} by {}", vote.answer, vote.by), 300))
            }
            News::ShownAnew => {
                paint.yellow(&printable(&format!("edited, asks now: {}", open.question), 500))
            }
            News::Ended(Fate::Decided(decision)) => {
                let text = format!("answered {} by {}", decision.answer, decision.by);
                paint.green(&printable(&text, 300))
            }
            News::Ended(Fate::Closed(status)) => {
                paint.dim(&format!("closed without an answer, the run is {}", status.as_str()))
            }
            News::Ended(Fate::Deleted) => paint.dim("deleted with its run"),
            News::Ended(Fate::Open) => String::new(),
        };
        let time = at.to_string();
        let clock = time.get(11..19).unwrap_or_default();
        format!("{}  {}  {text}", paint.dim(clock), paint.bold(row.run.as_str()))
    }
}

/// The JSON of a piece of news: what happened, when, to which question, and what belongs to it.
fn document(row: &GateRow, news: &News, at: Timestamp) -> Value {
    let (word, more) = match news {
        News::Opened => ("opened", serde_json::to_value(row).unwrap_or_default()),
        News::ShownAnew => ("shown_anew", serde_json::to_value(row).unwrap_or_default()),
        News::Reminded { also } => ("reminded", json!({ "also": also })),
        News::Voted(vote) => ("voted", json!({ "by": vote.by, "answer": vote.answer })),
        News::Ended(Fate::Decided(decision)) => {
            ("answered", json!({ "by": decision.by, "answer": decision.answer }))
        }
        News::Ended(Fate::Closed(status)) => ("closed", json!({ "status": status.as_str() })),
        News::Ended(Fate::Deleted) => ("closed", json!({ "status": null })),
        News::Ended(Fate::Open) => ("open", json!({})),
    };
    let mut document = json!({
        "type": word,
        "at": at,
        "run": row.run,
        "interrupt": row.open.interrupt,
    });
    if let (Some(fields), Value::Object(more)) = (document.as_object_mut(), more) {
        fields.extend(more);
    }
    document
}

/// Why a look at the list came to nothing.
enum Look {
    Failed(ProducerError),
    Stopped(Stop),
}

impl From<ProducerError> for Look {
    fn from(error: ProducerError) -> Self {
        Self::Failed(error)
    }
}

impl From<Stop> for Look {
    fn from(stop: Stop) -> Self {
        Self::Stopped(stop)
    }
}
