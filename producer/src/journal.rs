//! Reading journals: in pages, each record verified, and folded.

use holdpoint_graph::{Progress, RunId};
use holdpoint_storage::{Chain, JournalPart, Record, RunHead};

use crate::{Producer, ProducerError};

/// Records of one page; a record may be as large as what a node wrote.
pub(crate) const PAGE_RECORDS: usize = 200;

/// A run's head with its whole journal.
pub(crate) struct Journal {
    pub(crate) head: RunHead,
    pub(crate) records: Vec<Record>,
}

impl Journal {
    /// The progress after all records.
    pub(crate) fn progress(&self) -> Result<Progress, ProducerError> {
        self.fold(self.records.len())
    }

    /// The progress after the first `count` records.
    pub(crate) fn fold(&self, count: usize) -> Result<Progress, ProducerError> {
        let events = self.records.iter().take(count).map(|record| &record.event);
        Progress::fold(events).map_err(|fault| ProducerError::corrupt(&self.head.run, fault))
    }

    /// The progress after the event of number `seq`, from which another run may begin.
    pub(crate) fn checkpoint(&self, seq: u64) -> Result<Progress, ProducerError> {
        let run = &self.head.run;
        let count = usize::try_from(seq).ok().and_then(|seq| seq.checked_add(1));
        let count = count.filter(|count| *count <= self.records.len()).ok_or_else(|| {
            let why = match self.records.len().checked_sub(1) {
                None => format!("run {run} has no events yet"),
                Some(newest) => format!("the newest event of run {run} is {newest}, not {seq}"),
            };
            ProducerError::NoCheckpoint { why }
        })?;
        self.fold(count)
    }
}

impl Producer {
    /// The whole journal of a run that must exist.
    pub(crate) async fn journal(&self, run: &RunId) -> Result<Journal, ProducerError> {
        let mut chain = Chain::start(self.namespace(), run);
        let mut records = Vec::new();
        loop {
            let part = self.page(run, chain.seq()).await?;
            let is_empty = part.records.is_empty();
            decode(&mut chain, &part, &mut records)?;
            if chain.seq() >= part.head.seq {
                return Ok(Journal { head: part.head, records });
            }
            if is_empty {
                let why = format!("event {} is missing", chain.seq());
                return Err(ProducerError::corrupt(run, why));
            }
        }
    }

    pub(crate) async fn page(&self, run: &RunId, from: u64) -> Result<JournalPart, ProducerError> {
        let part = self.insist(None, || self.store().journal(run, from, PAGE_RECORDS)).await?;
        part.ok_or_else(|| ProducerError::no_run(run))
    }

    /// The head and the newest progress, from the snapshot on where there is one.
    pub(crate) async fn newest(&self, run: &RunId) -> Result<(RunHead, Progress), ProducerError> {
        let part = self.insist(None, || self.store().checkpoint(run)).await?;
        let part = part.ok_or_else(|| ProducerError::no_run(run))?;
        let (mut chain, mut progress) = match &part.snapshot {
            Some(snapshot) => Chain::decode_snapshot(self.namespace(), run, snapshot)?,
            None => (Chain::start(self.namespace(), run), Progress::new()),
        };
        let mut records = Vec::new();
        decode(&mut chain, &part, &mut records)?;
        for record in &records {
            let applied = progress.apply(&record.event);
            applied.map_err(|fault| ProducerError::corrupt(run, fault))?;
        }
        Ok((part.head, progress))
    }
}

/// Verifies and decodes the records of a part, and its head's hash when they reach it.
pub(crate) fn decode(
    chain: &mut Chain,
    part: &JournalPart,
    records: &mut Vec<Record>,
) -> Result<(), ProducerError> {
    let run = &part.head.run;
    if part.from != chain.seq() && !part.records.is_empty() {
        let why = format!("event {} came where {} was asked for", part.from, chain.seq());
        return Err(ProducerError::corrupt(run, why));
    }
    for record in &part.records {
        records.push(chain.decode(record)?);
    }
    if chain.seq() == part.head.seq && chain.hash() != part.head.hash {
        return Err(ProducerError::corrupt(run, "its journal does not lead to its hash"));
    }
    Ok(())
}
