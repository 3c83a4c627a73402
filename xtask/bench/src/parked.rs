//! Parked runs: what a page of the open questions costs among many of them, and what one weighs.

use std::{process::Stdio, time::Duration};

use anyhow::{Context as _, Result, ensure};
use futures_util::{StreamExt as _, TryStreamExt as _};
use holdpoint_graph::{Event, Interrupt, Question, RunId, State};
use holdpoint_producer::{GateFilter, GateOrder, Producer};
use holdpoint_storage::{
    Chain, ClaimRequest, ClaimedRun, Clock as _, CommitReply, CommitRequest, Disposition, IfBusy,
    Lane, NewRun, OpenedInterrupt, Random, Store, SystemClock, When, meaning_hash,
};
use serde_json::json;

use crate::stores::{Fresh, StoreKind, fresh};

/// Runs that are enqueued and claimed in one call.
const BATCH: usize = 100;
/// Commits in flight.
const COMMITS: usize = 64;
/// Rows of the pages that are measured.
const ROWS: usize = 50;
/// Rows of the pages by which middle and end are found.
const STRIDE: usize = 200;
const LEASE_MS: i64 = 3_600_000;
/// A time that comes after every measurement.
const FAR_MS: i64 = 4_000_000_000_000;

/// What is measured.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) runs: usize,
    pub(crate) calls: usize,
    /// The `holdpoint` program, to be measured as a whole process too.
    pub(crate) program: Option<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self { runs: 100_000, calls: 200, program: None }
    }
}

/// Name of a filter, its questions, and (p50, p99) in ms of its first, middle and last page.
type Pages = (&'static str, usize, [(f64, f64); 3]);

/// The figures of one store.
#[derive(Debug, Clone)]
pub(crate) struct Figures {
    store: &'static str,
    runs: usize,
    fill_s: f64,
    bytes_per_run: f64,
    /// Of these the journal.
    journal_bytes: usize,
    pages: Vec<Pages>,
    process_ms: Option<(f64, f64)>,
}

impl Figures {
    pub(crate) fn to_json(&self) -> String {
        let page = |(name, rows, places): &Pages| {
            let [first, middle, last] = places.map(|(p50, p99)| json!([p50, p99]));
            json!({ "filter": name, "questions": rows, "first": first, "middle": middle,
                "last": last })
        };
        json!({
            "work": "parked", "store": self.store, "runs": self.runs, "fill_s": self.fill_s,
            "bytes_per_run": self.bytes_per_run, "journal_bytes": self.journal_bytes,
            "pages_p50_p99_ms": self.pages.iter().map(page).collect::<Vec<_>>(),
            "process_p50_p99_ms": self.process_ms.map(|(p50, p99)| json!([p50, p99])),
        })
        .to_string()
    }

    pub(crate) fn to_text(&self) -> String {
        let mut text = format!(
            "{}: {} parked runs in {:.1} s, {:.0} bytes each ({} of them journal); a page of \
             {ROWS} in ms, p50/p99, first, middle, last:",
            self.store, self.runs, self.fill_s, self.bytes_per_run, self.journal_bytes
        );
        for (name, rows, places) in &self.pages {
            text += &format!("\n  {name:<28} {rows:>7}");
            for (p50, p99) in places {
                text += &format!("  {p50:>6.2}/{p99:<6.2}");
            }
        }
        if let Some((p50, p99)) = self.process_ms {
            text += &format!("\n  holdpoint gates as a process: p50 {p50:.0} ms, p99 {p99:.0} ms");
        }
        text
    }
}

/// Fills a fresh store with parked runs and measures pages of their questions.
pub(crate) async fn measure(kind: StoreKind, settings: &Settings) -> Result<Figures> {
    let fresh = fresh(kind, 0).await?;
    let before = fresh.bytes()?;
    let began = SystemClock.monotonic();
    let mut journal_bytes = 0;
    for first in (0..settings.runs).step_by(BATCH) {
        let last = (first + BATCH).min(settings.runs);
        journal_bytes = fill(&*fresh.store, first..last).await?;
    }
    let fill_s = (SystemClock.monotonic() - began).as_secs_f64();
    let grown = fresh.bytes()?.saturating_sub(before);
    let producer = Producer::new(std::sync::Arc::clone(&fresh.store));
    let mut pages = Vec::new();
    for (name, filter) in filters()? {
        let (rows, starts) = starts(&producer, &filter).await?;
        let mut places = [(0.0, 0.0); 3];
        for (place, start) in places.iter_mut().zip(&starts) {
            *place = page(&producer, &filter, start.as_deref(), settings.calls).await?;
        }
        pages.push((name, rows, places));
    }
    let process_ms = match &settings.program {
        Some(program) => Some(processes(program, &fresh)?),
        None => None,
    };
    Ok(Figures {
        store: kind.name(),
        runs: settings.runs,
        fill_s,
        bytes_per_run: grown as f64 / settings.runs.max(1) as f64,
        journal_bytes,
        pages,
        process_ms,
    })
}

fn graph_of(n: usize) -> &'static str {
    match n {
        n if n % 1_000 == 7 => "rare",
        n if n.is_multiple_of(2) => "refunds",
        _ => "orders",
    }
}

fn new_run(n: usize) -> Result<NewRun> {
    let payload = json!({ "id": n, "pad": "x".repeat(400) });
    Ok(NewRun {
        run: Random.run_id(SystemClock.wall_ms()),
        request: Random.request_id(),
        graph: graph_of(n).parse()?,
        fingerprint: None,
        queue: "default".parse()?,
        session: None,
        if_busy: IfBusy::Enqueue,
        payload: payload.to_string().into_bytes(),
        payload_hash: meaning_hash(&payload),
        priority: 4,
        start: When::In(0),
        expires: None,
        deadline: None,
        key: None,
        tags: vec![format!("team=t{}", n % 20)],
        queue_depth_max: 1_000_000,
    })
}

/// A question of one person in two of three, of a group too in one of ten, with a deadline in one
/// of two.
fn question(n: usize, run: &RunId) -> Result<Interrupt> {
    let mut question = Question::new(format!("Refund 40 to customer {n}?"));
    if !n.is_multiple_of(3) {
        question = question.assignee(format!("person{}", n % 50));
    }
    if n.is_multiple_of(10) {
        question = question.group("finance");
    }
    let id = format!("{run}-1").parse()?;
    let mut open = Interrupt::of_question(id, &question, &State::new());
    open.gate = Some("refund".to_owned());
    open.deadline_ms = (n % 4 < 2).then(|| FAR_MS + (n * 7_919 % 100_000) as i64 * 1_000);
    Ok(open)
}

/// Stores some runs and parks them; the bytes of one journal.
async fn fill(store: &dyn Store, numbers: std::ops::Range<usize>) -> Result<usize> {
    let items: Vec<NewRun> = numbers.clone().map(new_run).collect::<Result<_>>()?;
    store.enqueue(&items, false).await?;
    let mut lanes: Vec<Lane> = items.iter().map(NewRun::lane).collect();
    lanes.sort();
    lanes.dedup();
    let request = ClaimRequest {
        worker: "filler".parse()?,
        nonce: Random.nonce(),
        lanes,
        max: items.len(),
        lease_ms: LEASE_MS,
        oldest_first: false,
        bytes_max: usize::MAX >> 1,
    };
    let claimed = store.claim(&request).await?.runs;
    ensure!(claimed.len() == items.len(), "{} of {} were claimed", claimed.len(), items.len());
    let calls = numbers.zip(claimed).map(|(n, claimed)| park(store, n, claimed));
    let bytes: Vec<usize> =
        futures_util::stream::iter(calls).buffer_unordered(COMMITS).try_collect().await?;
    Ok(bytes.first().copied().unwrap_or(0))
}

/// Parks a claimed run at its question; the bytes of its journal.
async fn park(store: &dyn Store, n: usize, claimed: ClaimedRun) -> Result<usize> {
    let open = question(n, &claimed.head.run)?;
    let opened = vec![OpenedInterrupt::of(&open)];
    let mut chain = Chain::start(store.namespace(), &claimed.head.run);
    let event = Event::InterruptOpened { interrupt: Box::new(open) };
    let record = chain.encode(1_000, claimed.lease.pair.epoch, &event);
    let bytes = record.len();
    let request = CommitRequest {
        lease: claimed.lease,
        request: Random.request_id(),
        from: claimed.head.seq,
        previous: claimed.head.hash,
        records: vec![record],
        hash: chain.hash(),
        snapshot: None,
        consumed: Vec::new(),
        opened,
        closed: Vec::new(),
        is_progress: true,
        pin: None,
        lease_ms: LEASE_MS,
        disposition: Disposition::Park { wake_at_ms: None },
    };
    let reply = store.commit(&request).await?;
    ensure!(matches!(reply, CommitReply::Done { .. }), "a park was answered with {reply:?}");
    Ok(bytes)
}

fn filters() -> Result<Vec<(&'static str, GateFilter)>> {
    let none = GateFilter::default;
    let deadline = || GateFilter { order: GateOrder::Deadline, ..none() };
    let (person, team) = (Some("person7".to_owned()), Some("team=t7".to_owned()));
    let half = || Some("refunds".parse()).transpose();
    Ok(vec![
        ("none", none()),
        ("none, by deadline", deadline()),
        ("graph, half", GateFilter { graph: half()?, ..none() }),
        ("graph, half, by deadline", GateFilter { graph: half()?, ..deadline() }),
        ("graph, one in 1000", GateFilter { graph: Some("rare".parse()?), ..none() }),
        ("assignee", GateFilter { assignee: person.clone(), ..none() }),
        ("assignee, by deadline", GateFilter { assignee: person.clone(), ..deadline() }),
        ("group", GateFilter { groups: vec!["finance".to_owned()], ..none() }),
        ("tag", GateFilter { tag: team.clone(), ..none() }),
        ("tag, by deadline", GateFilter { tag: team.clone(), ..deadline() }),
        ("opened before", GateFilter { opened_before_ms: Some(FAR_MS), ..none() }),
        (
            "assignee, tag, graph",
            GateFilter { assignee: person, tag: team, graph: half()?, ..none() },
        ),
    ])
}

/// How many questions a filter shows, and where its first, middle and last pages begin.
async fn starts(producer: &Producer, filter: &GateFilter) -> Result<(usize, [Option<String>; 3])> {
    let (mut starts, mut rows) = (vec![None::<String>], 0);
    loop {
        let after = starts.last().and_then(|start| start.as_deref());
        let page = producer.gates(filter, after, STRIDE).await?;
        rows += page.rows.len();
        match page.next {
            Some(next) => starts.push(Some(next)),
            None => break,
        }
    }
    let at = |n: usize| starts.get(n).cloned().flatten();
    Ok((rows, [None, at(starts.len() / 2), at(starts.len() - 1)]))
}

/// (p50, p99) in ms of a page.
async fn page(
    producer: &Producer,
    filter: &GateFilter,
    after: Option<&str>,
    calls: usize,
) -> Result<(f64, f64)> {
    let mut samples = Vec::with_capacity(calls);
    for _ in 0..calls {
        let began = SystemClock.monotonic();
        producer.gates(filter, after, ROWS).await?;
        samples.push(SystemClock.monotonic() - began);
    }
    Ok(shares(samples))
}

/// (p50, p99) in ms of `holdpoint gates`, from the start of the process to its end.
fn processes(program: &str, fresh: &Fresh) -> Result<(f64, f64)> {
    let mut samples = Vec::new();
    for _ in 0..20 {
        let began = SystemClock.monotonic();
        let args = ["gates", "--limit", "50", "--json", "--namespace", "bench", "--store"];
        let mut command = std::process::Command::new(program);
        command.args(args).arg(&fresh.url).stdin(Stdio::null());
        let output = command.output().with_context(|| format!("failed to start {program}"))?;
        samples.push(SystemClock.monotonic() - began);
        let error = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "{program} ended as {}: {error}", output.status);
        let rows = output.stdout.iter().filter(|byte| **byte == b'\n').count();
        ensure!(rows >= 50, "{program} showed {rows} rows");
    }
    Ok(shares(samples))
}

fn shares(mut samples: Vec<Duration>) -> (f64, f64) {
    samples.sort();
    let at = |share: usize| samples.get(samples.len() * share / 100);
    let ms = |share| at(share).map_or(0.0, |time| time.as_secs_f64() * 1_000.0);
    (ms(50), ms(99))
}
