//! The dump: every run of a store, read through its public face.
//!
//! Journals are decoded through [`Chain`], which recomputes each record's keyed hash from its
//! predecessor's: a record that was changed, lost, doubled or moved stops it.

use holdpoint_graph::{Event, RunId};
use holdpoint_storage::{
    Chain, Cursor, Finding, OpenQuestion, Page, QuestionFilter, Record, RunFilter, RunHead, Store,
    StoreResult,
};

/// Rows of one page of a list.
const PAGE: usize = 500;
/// Records of one part of a journal.
const RECORDS: usize = 500;

/// What a store holds.
#[derive(Debug, Clone, Default)]
pub struct Dump {
    /// Its runs, in no order.
    pub runs: Vec<RunDump>,
    /// What the store's own check says of itself.
    pub findings: Vec<Finding>,
    /// How many runs its counters count.
    pub counted: u64,
    /// The store's time when it was taken, in ms since 1970.
    pub now_ms: i64,
}

/// One run.
#[derive(Debug, Clone)]
pub struct RunDump {
    /// Its id.
    pub run: String,
    /// Its graph.
    pub graph: String,
    /// The word of its state.
    pub status: String,
    /// Why it failed.
    pub reason: Option<String>,
    /// The ids of its open questions.
    pub interrupts: Vec<String>,
    /// When it goes on by itself.
    pub due_at_ms: Option<i64>,
    /// The length of its journal, as its head has it.
    pub seq: u64,
    /// The newest epoch, as its head has it.
    pub epoch: u64,
    /// Its events, as far as they can be read.
    pub events: Vec<EventDump>,
    /// Why its journal is not the one that was written.
    pub damage: Option<String>,
}

/// One event.
#[derive(Debug, Clone)]
pub struct EventDump {
    /// Its number.
    pub seq: u64,
    /// When, in ms since 1970 by the store's clock.
    pub at_ms: i64,
    /// The epoch of the owner that wrote it; 0 when it was no owner.
    pub epoch: u64,
    /// The event.
    pub event: Event,
}

impl From<Record> for EventDump {
    fn from(record: Record) -> Self {
        let Record { seq, at_ms, epoch, event } = record;
        Self { seq, at_ms, epoch, event }
    }
}

impl Dump {
    /// Reads the whole store. Runs that change meanwhile are each consistent in themselves.
    ///
    /// # Errors
    /// When the store cannot be read; a damaged journal is no error but part of the dump.
    pub async fn take(store: &dyn Store) -> StoreResult<Self> {
        let mut dump = Self { now_ms: store.now_ms().await?, ..Self::default() };
        let mut after: Option<Cursor> = None;
        loop {
            let page = store.runs(&RunFilter::default(), after.as_ref(), PAGE).await?;
            for head in page.rows {
                dump.runs.push(run(store, head).await?);
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        dump.counted = store.stats().await?.counts.iter().map(|(_, count)| count).sum();
        dump.findings = store.check().await?;
        Ok(dump)
    }
}

async fn run(store: &dyn Store, head: RunHead) -> StoreResult<RunDump> {
    let mut head = head;
    let (events, damage) = journal(store, &mut head).await?;
    Ok(RunDump {
        run: head.run.to_string(),
        graph: head.graph.to_string(),
        status: head.status().as_str().to_owned(),
        reason: head.reason().map(|reason| reason.as_str().to_owned()),
        interrupts: questions(store, &head.run).await?,
        due_at_ms: head.due_at_ms(),
        seq: head.seq,
        epoch: head.epoch,
        events,
        damage,
    })
}

async fn questions(store: &dyn Store, run: &RunId) -> StoreResult<Vec<String>> {
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page: Page<OpenQuestion> =
            store.questions(&QuestionFilter::of_run(run), after.as_ref(), PAGE).await?;
        found.extend(page.rows.iter().map(|question| question.interrupt.to_string()));
        after = page.next;
        if after.is_none() {
            return Ok(found);
        }
    }
}

/// The events of a run, and what is wrong with its journal; `head` becomes the one that goes with
/// them.
async fn journal(
    store: &dyn Store,
    head: &mut RunHead,
) -> StoreResult<(Vec<EventDump>, Option<String>)> {
    let mut chain = Chain::start(store.namespace(), &head.run);
    let mut events = Vec::new();
    loop {
        let part = match store.journal(&head.run, chain.seq(), RECORDS).await {
            Ok(Some(part)) => part,
            Ok(None) => return Ok((events, Some("the run is listed but has no journal".into()))),
            Err(holdpoint_storage::StoreError::Corrupt { what, why }) => {
                return Ok((events, Some(format!("{what} is damaged: {why}"))));
            }
            Err(error) => return Err(error),
        };
        for record in &part.records {
            match chain.decode(record) {
                Ok(record) => events.push(record.into()),
                Err(error) => return Ok((events, Some(error.to_string()))),
            }
        }
        *head = part.head;
        if chain.seq() < head.seq && !part.records.is_empty() {
            continue;
        }
        let ends_well = chain.seq() == head.seq && chain.hash() == head.hash;
        let damage = (!ends_well).then(|| {
            let (seq, head) = (chain.seq(), head.seq);
            format!("the journal ends at {seq} with another hash than the head's at {head}")
        });
        return Ok((events, damage));
    }
}
