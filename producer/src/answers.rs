//! Several answers of one call, as after a look at all open questions of a run: all are taken, or
//! none.

use std::collections::BTreeSet;

use holdpoint_graph::{
    Code, Refusal, RequestId, RunId, fingerprint::of_parts, limits::ANSWERS_MAX,
};
use holdpoint_storage::{
    Address, InboxEntry, Random, SignalRecord, SignalReply, SignalRequest, SignalsReply, StoreError,
};

use crate::{
    Producer, ProducerError, SignalOptions, Signalled,
    producer::{cause_of, may_repeat},
    signal::{decision_of, is_too_late, no_session},
};

/// The answers of a call, each with what is stored of it.
struct Several<'a> {
    options: &'a [SignalOptions],
    /// The caller's request, of which the answers' own are made.
    request: RequestId,
    addresses: Vec<Address>,
    records: Vec<SignalRecord>,
}

impl Several<'_> {
    /// The error of one answer, which is why none was taken.
    fn refused(&self, index: usize, error: ProducerError) -> ProducerError {
        let to = self.options.get(index).map(SignalOptions::to_whom).unwrap_or_default();
        ProducerError::OneOfSeveral { to, error: Box::new(error) }
    }

    fn unknown(&self, cause: String) -> ProducerError {
        ProducerError::UnknownOutcome { request: self.request.clone(), cause }
    }
}

impl Producer {
    /// Answers several questions of one run, of which either all answers are taken or none. Each
    /// is checked like an answer of its own, and may be a vote; all name the same run, and the
    /// same [key](SignalOptions::key) if any. Repeated with that key, the call has one effect and
    /// one reply.
    ///
    /// # Errors
    /// Those of [`Producer::signal`] inside an [`OneOfSeveral`](ProducerError::OneOfSeveral)
    /// that names the question; `E_SCHEMA` when there is no answer, when two are for one question
    /// or for several runs; `E_TOO_LARGE` for more than
    /// [`ANSWERS_MAX`]; `E_IDEMPOTENCY_CONFLICT`. Nothing is taken then.
    pub async fn signal_all(
        &self,
        options: &[SignalOptions],
    ) -> Result<Vec<Signalled>, ProducerError> {
        let first = alike(options)?;
        let key = first.key.as_ref().map(RequestId::new).transpose()?;
        let request = key.clone().unwrap_or_else(|| Random.request_id());
        let several = self.several(options, request).await?;
        let runs = self.target(&first.target).await?;
        if key.is_some() {
            for run in &runs {
                if let Some(done) = self.all_taken(run, &several).await? {
                    return Ok(done);
                }
            }
        }
        let run = runs.into_iter().next().ok_or_else(|| no_session(&first.target))?;
        let replies = self.deliver_all(&run, &several).await?;
        if key.is_some() {
            // Stored they are; only whether they are these answers, or others of the same key.
            for waiting in self.all_waiting(&run, &several.records).await?.into_iter().flatten() {
                waiting?;
            }
        }
        Ok(replies)
    }

    /// Looks for the questions and sends the answers to them: again, when the run moved in between.
    async fn deliver_all(
        &self,
        run: &RunId,
        several: &Several<'_>,
    ) -> Result<Vec<Signalled>, ProducerError> {
        let mut tries = self.tries();
        loop {
            let signals = self.judged(run, several).await?;
            if let Some(told) = self.send_all(&signals, several).await? {
                return Ok(told);
            }
            // A connection may have sent them twice, and what moved the run were these answers.
            if let Some(done) = self.all_taken(run, several).await? {
                return Ok(done);
            }
            if !tries.again().await {
                let cause = format!("the run {run} moves all the time");
                return Err(ProducerError::Store(StoreError::Unavailable { cause }));
            }
        }
    }

    async fn several<'a>(
        &self,
        options: &'a [SignalOptions],
        request: RequestId,
    ) -> Result<Several<'a>, ProducerError> {
        let (addresses, records) = (Vec::new(), Vec::new());
        let mut several = Several { options, request, addresses, records };
        for (index, option) in options.iter().enumerate() {
            let checked = option.address().and_then(|to| Ok((to, option.checked_answer()?)));
            let (address, answer) =
                checked.map_err(|refusal| several.refused(index, refusal.into()))?;
            let own = own_request(&several.request, &address)?;
            let record = self.record(option, answer.clone(), &own).await?;
            several.addresses.push(address);
            several.records.push(record);
        }
        Ok(several)
    }

    /// The replies to a call that was made before; none when nothing of it is known.
    async fn all_taken(
        &self,
        run: &RunId,
        several: &Several<'_>,
    ) -> Result<Option<Vec<Signalled>>, ProducerError> {
        let found = self.all_done_before(run, &several.records).await?;
        if found.iter().all(Option::is_none) {
            return Ok(None);
        }
        let is_whole = found.iter().all(Option::is_some);
        let mut replies = Vec::with_capacity(found.len());
        for (found, record) in found.into_iter().zip(&several.records) {
            let Some(reply) = found.transpose()? else { continue };
            if !is_whole {
                let (request, decision) = (several.request.clone(), decision_of(record));
                return Err(ProducerError::RequestConflict { request, decision });
            }
            replies.push(reply);
        }
        Ok(Some(replies))
    }

    /// Checks each answer against its question, and says what it counts as.
    async fn judged(
        &self,
        run: &RunId,
        several: &Several<'_>,
    ) -> Result<Vec<SignalRequest>, ProducerError> {
        let head = self.head(run).await?;
        let open = self.open_questions(run).await?;
        let mut signals = Vec::with_capacity(several.records.len());
        let mut seen = BTreeSet::new();
        for (index, record) in several.records.iter().enumerate() {
            let address = several.addresses[index].clone();
            let resolved = self.resolved(&head, &open, address, record).await;
            let (address, ballot) = resolved.map_err(|error| several.refused(index, error))?;
            if !seen.insert(text_of(&address)) {
                let why = "has two answers in one call";
                let refusal = Refusal::new(Code::Schema, "answers", why);
                return Err(several.refused(index, refusal.into()));
            }
            signals.push(SignalRequest {
                run: run.clone(),
                request: RequestId::new(&record.request)?,
                address,
                args_hash: several.options[index].args_hash.clone(),
                ballot,
                record: record.encode(),
            });
        }
        Ok(signals)
    }

    /// Sends the answers until the store has answered or the patience is over; none when the run
    /// has moved since somebody looked.
    async fn send_all(
        &self,
        signals: &[SignalRequest],
        several: &Several<'_>,
    ) -> Result<Option<Vec<Signalled>>, ProducerError> {
        let Some(first) = signals.first() else { return Ok(Some(Vec::new())) };
        let mut tries = self.tries();
        let mut is_unknown = false;
        loop {
            let call = self.store().signal_all(signals);
            let error = match self.attempt(Some(&several.request), &tries, call).await {
                Ok(SignalsReply::Taken(replies)) => {
                    return self.all_told(signals, several, replies).await.map(Some);
                }
                Ok(SignalsReply::Refused { reply: SignalReply::Moved, .. }) => return Ok(None),
                Ok(SignalsReply::Refused { index, reply }) => {
                    return self.none_taken(signals, several, index, reply).await.map(Some);
                }
                Err(error) => error,
            };
            is_unknown |= matches!(error, StoreError::UnknownOutcome { .. });
            if !may_repeat(&error) || !tries.again().await {
                return Err(match is_unknown {
                    true => several.unknown(cause_of(error)),
                    false => error.into(),
                });
            }
            if is_unknown && let Ok(Some(done)) = self.all_taken(&first.run, several).await {
                return Ok(Some(done));
            }
        }
    }

    async fn all_told(
        &self,
        signals: &[SignalRequest],
        several: &Several<'_>,
        replies: Vec<SignalReply>,
    ) -> Result<Vec<Signalled>, ProducerError> {
        let mut told = Vec::with_capacity(replies.len());
        for ((signal, record), reply) in signals.iter().zip(&several.records).zip(replies) {
            told.push(self.told(signal, record, reply).await?);
        }
        Ok(told)
    }

    /// The error of the answer that is refused; unless the call had come to the store before, and
    /// the run has taken all of it meanwhile.
    async fn none_taken(
        &self,
        signals: &[SignalRequest],
        several: &Several<'_>,
        index: usize,
        reply: SignalReply,
    ) -> Result<Vec<Signalled>, ProducerError> {
        let odd = || StoreError::Corrupt {
            what: "the reply to several answers".to_owned(),
            why: format!("it refuses number {index} of {} with {reply:?}", signals.len()),
        };
        let (Some(signal), Some(record)) = (signals.get(index), several.records.get(index)) else {
            return Err(odd().into());
        };
        let Err(error) = self.told(signal, record, reply.clone()).await else {
            return Err(odd().into());
        };
        if is_too_late(&error) {
            match self.all_taken(&signal.run, several).await {
                Ok(Some(done)) => return Ok(done),
                Ok(None) => {}
                Err(error) => return Err(several.unknown(error.to_string())),
            }
        }
        Err(several.refused(index, error))
    }
}

/// What all answers of a call must have in common; the first one.
fn alike(options: &[SignalOptions]) -> Result<&SignalOptions, Refusal> {
    let no = |why: &str| Refusal::new(Code::Schema, "answers", why);
    let first = options.first().ok_or_else(|| no("are none, at least one was expected"))?;
    if options.len() > ANSWERS_MAX {
        let why = format!("are {}, the limit is {ANSWERS_MAX}", options.len());
        return Err(Refusal::new(Code::TooLarge, "answers", why));
    }
    if options.iter().any(|option| option.target != first.target || option.key != first.key) {
        return Err(no("are for several runs or have several keys, one call is about one run"));
    }
    Ok(first)
}

/// The request of one answer: the same whenever the call is made with its key.
fn own_request(request: &RequestId, address: &Address) -> Result<RequestId, Refusal> {
    RequestId::new(of_parts(&["answers", request.as_str(), &text_of(address)]))
}

fn text_of(address: &Address) -> String {
    match address {
        Address::Interrupt(interrupt) => InboxEntry::of_interrupt(interrupt),
        Address::Gate(gate) | Address::Unopened { gate, .. } => InboxEntry::of_gate(gate),
        Address::Only => "?".to_owned(),
    }
}
