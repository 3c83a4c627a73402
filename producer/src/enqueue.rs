//! Enqueueing: one run, or a batch in atomic chunks.

use std::collections::{BTreeMap, BTreeSet};

use holdpoint_graph::{Code, GraphId, KeyId, Refusal, RunId, RunStatus, limits, nearest};
use holdpoint_storage::{Durability, EnqueueReply, Enqueued, NewRun};
use serde::Serialize;

use crate::{Producer, ProducerError, RunRequest};

/// What became of a request for a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Receipt {
    /// The run.
    pub run: RunId,
    /// Its session; the run's own id when it has no named one.
    pub session: String,
    /// Its graph.
    pub graph: GraphId,
    /// Whether this request stored it. False: an earlier one with the same key did.
    pub created: bool,
    /// Its state.
    pub status: RunStatus,
    /// What the acknowledgement reached.
    pub durability: Durability,
}

/// Why a batch was not stored, or not wholly.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{}{error}", place(*index))]
pub struct BatchError {
    /// The item at fault, from 0; none when it is the whole.
    pub index: Option<usize>,
    /// How many items before it are stored. Nothing is while items are checked.
    pub stored: usize,
    /// What is wrong.
    #[source]
    pub error: Box<ProducerError>,
}

fn place(index: Option<usize>) -> String {
    index.map_or_else(String::new, |index| format!("item {index}: "))
}

impl BatchError {
    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> Code {
        self.error.code()
    }
}

/// One item's verdict.
type Verdict = Result<Receipt, ProducerError>;

/// An item that passed the checks, with its place in the batch.
struct Item {
    index: usize,
    new: NewRun,
}

impl Producer {
    /// Stores a run.
    ///
    /// # Errors
    /// Refusals before anything is stored; conflicts with what is there; an unknown outcome, to be
    /// repeated with [`RunRequest::request`] and the id it names.
    pub async fn enqueue(&self, request: &RunRequest) -> Result<Receipt, ProducerError> {
        let new = request.prepare(self.now_ms().await?, self.queue_depth_max())?;
        if !request.allow_unknown {
            self.check_graph(&new.graph).await?;
        }
        self.store_one(&new).await
    }

    pub(crate) async fn store_one(&self, new: &NewRun) -> Result<Receipt, ProducerError> {
        let items = std::slice::from_ref(new);
        let call = || self.store().enqueue(items, false);
        let reply = self.insist(Some(&new.request), call).await?;
        match reply.items.first() {
            Some(answer) => verdict(new, answer, reply.durability),
            None => Err(ProducerError::corrupt(&new.run, "the store answered for no item")),
        }
    }

    /// Once any graph was published, a graph that was not is a slip of the pen.
    async fn check_graph(&self, graph: &GraphId) -> Result<(), ProducerError> {
        for is_fresh in [false, true] {
            let known = self.published(is_fresh).await?;
            if known.is_empty() || known.iter().any(|record| record.graph == *graph) {
                return Ok(());
            }
            if is_fresh {
                let names = known.iter().map(|record| record.graph.as_str());
                let near = nearest(graph.as_str(), names).map(str::to_owned);
                return Err(ProducerError::UnknownGraph { graph: graph.clone(), near });
            }
        }
        Ok(())
    }

    /// Stores up to 10,000 runs in atomic chunks of 100. Everything that can be checked without
    /// the store is checked before the first write.
    ///
    /// With keys or run ids a repeat completes what an interruption left: what is there with the
    /// same payload counts as stored. `partial` stores the good items and answers for each.
    ///
    /// # Errors
    /// Unless `partial`, the first item that is refused, with its index.
    pub async fn enqueue_batch(
        &self,
        requests: &[RunRequest],
        partial: bool,
    ) -> Result<Vec<Result<Receipt, ProducerError>>, BatchError> {
        let whole = |error| BatchError { index: None, stored: 0, error: Box::new(error) };
        let (count, max) = (requests.len(), limits::BATCH_ITEMS_MAX);
        if count > max {
            let message = format!("has {count} items, the most is {max}");
            return Err(whole(Refusal::new(Code::TooLarge, "batch", message).into()));
        }
        let checked = self.check_batch(requests).await.map_err(whole)?;
        let mut verdicts: BTreeMap<usize, Verdict> = BTreeMap::new();
        let mut items = Vec::with_capacity(count);
        for (index, checked) in checked.into_iter().enumerate() {
            match checked {
                Ok(new) => items.push(Item { index, new }),
                Err(error) if partial => {
                    verdicts.insert(index, Err(error));
                }
                Err(error) => {
                    let error = Box::new(error);
                    return Err(BatchError { index: Some(index), stored: 0, error });
                }
            }
        }
        while !items.is_empty() {
            let rest = items.split_off(items.len().min(limits::BATCH_CHUNK));
            let chunk = std::mem::replace(&mut items, rest);
            let stored = verdicts.values().filter(|verdict| verdict.is_ok()).count();
            let first = chunk.first().map(|item| item.index);
            let answers = self.store_chunk(chunk, partial).await.map_err(|(index, error)| {
                BatchError { index: index.or(first), stored, error: Box::new(error) }
            })?;
            verdicts.extend(answers);
        }
        Ok(verdicts.into_values().collect())
    }

    async fn check_batch(
        &self,
        requests: &[RunRequest],
    ) -> Result<Vec<Result<NewRun, ProducerError>>, ProducerError> {
        let now_ms = self.now_ms().await?;
        let mut graphs: BTreeMap<GraphId, Option<ProducerError>> = BTreeMap::new();
        let mut runs: BTreeSet<RunId> = BTreeSet::new();
        let mut keys: BTreeMap<KeyId, (RunId, String)> = BTreeMap::new();
        let mut checked = Vec::with_capacity(requests.len());
        for request in requests {
            let new = match request.prepare(now_ms, self.queue_depth_max()) {
                Ok(new) => new,
                Err(refusal) => {
                    checked.push(Err(refusal.into()));
                    continue;
                }
            };
            if !request.allow_unknown && !graphs.contains_key(&new.graph) {
                let fault = match self.check_graph(&new.graph).await {
                    Ok(()) => None,
                    Err(error @ ProducerError::UnknownGraph { .. }) => Some(error),
                    Err(error) => return Err(error),
                };
                graphs.insert(new.graph.clone(), fault);
            }
            let unknown = graphs.get(&new.graph).filter(|_| !request.allow_unknown);
            checked.push(match unknown.cloned().flatten() {
                Some(error) => Err(error),
                None => check_twins(new, &mut runs, &mut keys),
            });
        }
        Ok(checked)
    }

    /// Stores one chunk; an error names the item at fault, or none.
    async fn store_chunk(
        &self,
        mut chunk: Vec<Item>,
        partial: bool,
    ) -> Result<Vec<(usize, Verdict)>, (Option<usize>, ProducerError)> {
        let mut verdicts = Vec::with_capacity(chunk.len());
        while let Some(first) = chunk.first() {
            let request = first.new.request.clone();
            let runs: Vec<NewRun> = chunk.iter().map(|item| item.new.clone()).collect();
            let call = || self.store().enqueue(&runs, partial);
            let reply = self.insist(Some(&request), call).await.map_err(|error| (None, error))?;
            let is_stored = partial || !reply.items.iter().any(Enqueued::is_refused);
            let answers = self.judge(&chunk, &reply).await.map_err(|error| (None, error))?;
            if is_stored {
                verdicts.extend(answers);
                break;
            }
            // Nothing was stored. Items that are there already are taken out, the rest goes again.
            let mut there = BTreeSet::new();
            for ((index, verdict), answer) in answers.into_iter().zip(&reply.items) {
                match verdict {
                    Err(error) => return Err((Some(index), error)),
                    Ok(receipt) if answer.is_refused() => {
                        there.insert(index);
                        verdicts.push((index, Ok(receipt)));
                    }
                    Ok(_) => {}
                }
            }
            chunk.retain(|item| !there.contains(&item.index));
        }
        Ok(verdicts)
    }

    /// The verdicts on a chunk. A run id that is taken by a run with the same payload is no
    /// conflict in a batch: it is what an earlier try of the same batch left.
    async fn judge(
        &self,
        chunk: &[Item],
        reply: &EnqueueReply,
    ) -> Result<Vec<(usize, Verdict)>, ProducerError> {
        let mut verdicts = Vec::with_capacity(chunk.len());
        for (item, answer) in chunk.iter().zip(&reply.items) {
            let mut verdict = verdict(&item.new, answer, reply.durability);
            if *answer == Enqueued::RunExists {
                let head = self.head(&item.new.run).await?;
                if head.payload_hash == item.new.payload_hash {
                    let (run, status) = (&item.new.run, head.status());
                    verdict = Ok(receipt(&item.new, run, false, status, reply.durability));
                }
            }
            verdicts.push((item.index, verdict));
        }
        Ok(verdicts)
    }
}

/// Two items of one batch cannot share a run id, nor a key unless they mean the same.
fn check_twins(
    new: NewRun,
    runs: &mut BTreeSet<RunId>,
    keys: &mut BTreeMap<KeyId, (RunId, String)>,
) -> Result<NewRun, ProducerError> {
    if !runs.insert(new.run.clone()) {
        return Err(ProducerError::RunExists { run: new.run });
    }
    let Some(key) = &new.key else { return Ok(new) };
    match keys.get(key) {
        Some((run, hash)) if *hash != new.payload_hash => {
            Err(ProducerError::KeyConflict { key: key.clone(), run: run.clone() })
        }
        Some(_) => Ok(new),
        None => {
            keys.insert(key.clone(), (new.run.clone(), new.payload_hash.clone()));
            Ok(new)
        }
    }
}

fn receipt(
    new: &NewRun,
    run: &RunId,
    created: bool,
    status: RunStatus,
    durability: Durability,
) -> Receipt {
    let session = new.session.as_ref().map_or_else(|| run.to_string(), ToString::to_string);
    Receipt { run: run.clone(), session, graph: new.graph.clone(), created, status, durability }
}

fn verdict(new: &NewRun, answer: &Enqueued, durability: Durability) -> Verdict {
    match answer {
        // A repeated request gets the reply that was lost.
        Enqueued::Created { run, status } | Enqueued::Repeated { run, status } => {
            Ok(receipt(new, run, true, *status, durability))
        }
        Enqueued::Existing { run, status } => Ok(receipt(new, run, false, *status, durability)),
        Enqueued::KeyConflict { run } => match &new.key {
            Some(key) => Err(ProducerError::KeyConflict { key: key.clone(), run: run.clone() }),
            None => Err(ProducerError::corrupt(run, "a conflict of a key that was not given")),
        },
        Enqueued::RunExists => Err(ProducerError::RunExists { run: new.run.clone() }),
        Enqueued::SessionBusy { run, question } => match &new.session {
            Some(session) => Err(ProducerError::SessionBusy {
                session: session.clone(),
                run: run.clone(),
                question: question.clone(),
            }),
            None => Err(ProducerError::corrupt(run, "busy with a session that was not given")),
        },
        Enqueued::SessionGraph { graph } => match &new.session {
            Some(session) => {
                Err(ProducerError::SessionGraph { session: session.clone(), graph: graph.clone() })
            }
            None => Err(ProducerError::corrupt(&new.run, "the graph of a session not given")),
        },
        Enqueued::QueueFull { depth } => {
            Err(ProducerError::QueueFull { queue: new.queue.clone(), depth: *depth })
        }
    }
}
