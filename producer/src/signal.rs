//! Answers: to an open question, or to a gate that is yet to open.

use holdpoint_graph::{
    Ballot, Code, InterruptId, Refusal, RequestId, RunId, RunStatus, SessionId, check_answer,
    printable,
};
use holdpoint_storage::{
    Address, Random, RunHead, SignalRecord, SignalReply, SignalRequest, StoreError,
};
use serde::Serialize;
use serde_json::Value;

use crate::{
    Decision, Producer, ProducerError, SignalOptions, Timestamp,
    answer::Target,
    producer::{cause_of, may_repeat},
    questions::Open,
};

/// What became of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Signalled {
    /// The run.
    pub run: RunId,
    /// The question it answers; none while it waits for its gate to open.
    pub interrupt: Option<InterruptId>,
    /// Whether the question was open.
    pub outcome: SignalOutcome,
    /// Who decided.
    pub decided_by: String,
    /// When.
    pub at: Timestamp,
}

/// Whether the question was open.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SignalOutcome {
    /// It was: the run goes on.
    Delivered,
    /// It was, and needs more people to say the same.
    Voted,
    /// It was not: the answer is kept for the gate's first opening.
    Kept,
}

impl Producer {
    /// Answers a question. Exactly one answer to a question is taken.
    ///
    /// # Errors
    /// `E_NOT_FOUND`, `E_NO_QUESTION`, `E_AMBIGUOUS`, `E_SCHEMA`, `E_DECIDED`,
    /// `E_STALE_INTERRUPT`, `E_ARGS_CHANGED`, `E_RUN_FINAL`, `E_IDEMPOTENCY_CONFLICT`; nothing is
    /// taken then.
    pub async fn signal(&self, options: &SignalOptions) -> Result<Signalled, ProducerError> {
        let answer = options.checked_answer()?.clone();
        let address = options.address()?;
        let key = options.key.as_ref().map(RequestId::new).transpose()?;
        let request = key.clone().unwrap_or_else(|| Random.request_id());
        let runs = self.target(&options.target).await?;
        let record = self.record(options, answer, &request).await?;
        if key.is_some() {
            for run in &runs {
                if let Some(done) = self.done_before(run, &record).await? {
                    return done;
                }
            }
        }
        let run = runs.into_iter().next().ok_or_else(|| no_session(&options.target))?;
        let args_hash = options.args_hash.clone();
        let body = record.encode();
        let signal = SignalRequest { run, request, address, args_hash, ballot: None, record: body };
        let (reply, _) = self.deliver(&signal, &record).await?;
        if key.is_some() {
            // Stored it is; only whether it is this answer, or another one of the same request.
            let waits = self.waits_already(&signal.run, &record).await;
            if let Some(done) = waits.map_err(|error| unknown(&signal, &error))? {
                return done;
            }
        }
        Ok(reply)
    }

    /// Answers a question with a request that may be used once: a second use is refused, whoever
    /// was first.
    pub(crate) async fn signal_once(
        &self,
        options: &SignalOptions,
        id: &RequestId,
    ) -> Result<Signalled, ProducerError> {
        let used = || Refusal::new(Code::LinkUsed, "token", "was used already");
        let (answer, address) = (options.checked_answer()?.clone(), options.address()?);
        let (Target::Run(run) | Target::Session(run)) = &options.target;
        let run = RunId::new(run)?;
        let record = self.record(options, answer, id).await?;
        if self.done_before(&run, &record).await?.is_some() {
            return Err(used().into());
        }
        let (request, args_hash) = (id.clone(), options.args_hash.clone());
        let (body, ballot) = (record.encode(), None);
        let signal =
            SignalRequest { run: run.clone(), request, address, args_hash, ballot, record: body };
        match self.deliver(&signal, &record).await {
            Ok((_, true)) => Err(used().into()),
            Ok((reply, false)) => Ok(reply),
            Err(error @ ProducerError::UnknownOutcome { .. }) => Err(error),
            // The run may have taken the other use of it and gone on.
            Err(error) => match self.done_before(&run, &record).await? {
                Some(_) => Err(used().into()),
                None => Err(error),
            },
        }
    }

    pub(crate) async fn record(
        &self,
        options: &SignalOptions,
        answer: Value,
        request: &RequestId,
    ) -> Result<SignalRecord, ProducerError> {
        Ok(SignalRecord {
            answer,
            by: options.by.clone(),
            at_ms: self.now_ms().await?,
            comment: options.comment.clone(),
            groups: options.groups.clone(),
            from: options.from.clone(),
            request: request.to_string(),
        })
    }

    /// The run that is meant, and behind it another that a repeated request may have been for.
    pub(crate) async fn target(&self, target: &Target) -> Result<Vec<RunId>, ProducerError> {
        let session = match target {
            Target::Run(run) => return Ok(vec![RunId::new(run)?]),
            Target::Session(session) => SessionId::new(session)?,
        };
        let known = self.insist(None, || self.store().session(&session)).await?;
        match known {
            Some(known) => Ok(known.active.into_iter().chain(known.last).collect()),
            // A run without a named session is one of its own.
            None => {
                let run = RunId::new(&session)?;
                let head = self.insist(None, || self.store().head(&run)).await?;
                Ok(head.filter(|head| head.session.is_none()).map(|_| run).into_iter().collect())
            }
        }
    }

    /// Makes the address as exact as it can be, so that a repeat cannot meet the next question,
    /// checks the answer against what the question asks for, and says what it counts as.
    pub(crate) async fn resolved(
        &self,
        head: &RunHead,
        open: &[Open],
        address: Address,
        record: &SignalRecord,
    ) -> Result<(Address, Option<Ballot>), ProducerError> {
        let run = &head.run;
        if head.status().is_terminal() {
            let decision = match &address {
                Address::Interrupt(interrupt) => self.decision(run, interrupt).await?.0,
                Address::Gate(_) | Address::Unopened { .. } | Address::Only => None,
            };
            let status = head.status();
            return Err(ProducerError::RunFinal { run: run.clone(), status, decision });
        }
        let fits = |open: &&Open| match &address {
            Address::Interrupt(interrupt) => open.interrupt == *interrupt,
            Address::Gate(gate) | Address::Unopened { gate, .. } => open.gate() == Some(gate),
            Address::Only => true,
        };
        let found: Vec<&Open> = open.iter().filter(fits).collect();
        match (found.as_slice(), &address) {
            ([], Address::Interrupt(_)) => Ok((address, None)),
            ([], Address::Gate(gate) | Address::Unopened { gate, .. }) => {
                // It answers the first opening, and that may be over.
                if let Some((interrupt, decision)) = self.gate_decision(run, gate).await? {
                    let (run, interrupt) = (run.clone(), Some(interrupt));
                    return Err(ProducerError::Decided { run, interrupt, decision });
                }
                if let Some(known) = self.known_gate(head, gate).await? {
                    if known.quorum > 1 {
                        let why = format!(
                            "the gate {gate} of run {run} needs {} votes, and takes them once it \
                             is open",
                            known.quorum
                        );
                        return Err(ProducerError::NoQuestion { run: run.clone(), why });
                    }
                    check_answer(known.schema.as_ref(), &record.answer)?;
                }
                // What was seen is older than this: it holds while the run stands where it stood.
                Ok((Address::Unopened { gate: gate.clone(), seq: head.seq }, None))
            }
            ([], Address::Only) => Err(no_question(head)),
            ([one], _) => {
                let answer = record.to_answer();
                let ballot = match &one.asked {
                    Some(asked) => {
                        Self::in_time(run, asked, record)?;
                        asked.check(&answer)?;
                        self.check_edit(run, asked, &answer).await?;
                        asked.ballot(&answer)
                    }
                    None => None,
                };
                Ok((Address::Interrupt(one.interrupt.clone()), ballot))
            }
            (several, _) => {
                let named = several.iter().map(|o| (o.interrupt.clone(), o.question()));
                Err(ProducerError::Ambiguous { run: run.clone(), open: named.collect() })
            }
        }
    }

    /// Sends the answer, and says whether the request had been taken before this call; none when
    /// the run has moved since somebody looked. After an unknown outcome it looks for it before it
    /// sends it again: the run may have taken it meanwhile and stand at its next question.
    pub(crate) async fn send(
        &self,
        signal: &SignalRequest,
        record: &SignalRecord,
    ) -> Result<Option<(Signalled, bool)>, ProducerError> {
        let mut tries = self.tries();
        let mut is_unknown = false;
        loop {
            let call = self.store().signal(signal);
            let error = match self.attempt(Some(&signal.request), &tries, call).await {
                Ok(SignalReply::Moved) => return Ok(None),
                Ok(reply) => {
                    let is_repeat =
                        matches!(&reply, SignalReply::Delivered { is_repeat: true, .. });
                    let told = self.told(signal, record, reply).await;
                    let is_repeat = is_repeat || told.is_err();
                    let told = self.unless_taken(signal, record, told).await?;
                    return Ok(Some((told, is_repeat && !is_unknown)));
                }
                Err(error) => error,
            };
            is_unknown |= matches!(error, StoreError::UnknownOutcome { .. });
            if !may_repeat(&error) || !tries.again().await {
                return Err(match is_unknown {
                    true => {
                        let (request, cause) = (signal.request.clone(), cause_of(error));
                        ProducerError::UnknownOutcome { request, cause }
                    }
                    false => error.into(),
                });
            }
            if is_unknown && let Ok(Some(done)) = self.done_before(&signal.run, record).await {
                return done.map(|done| Some((done, false)));
            }
        }
    }

    /// A call may reach the store and be sent once more all the same, by a connection that broke
    /// in between. Then what is too late is the repeat of an answer that was taken.
    async fn unless_taken(
        &self,
        signal: &SignalRequest,
        record: &SignalRecord,
        told: Result<Signalled, ProducerError>,
    ) -> Result<Signalled, ProducerError> {
        if !told.as_ref().is_err_and(is_too_late) {
            return told;
        }
        match self.done_before(&signal.run, record).await {
            Ok(done) => done.unwrap_or(told),
            Err(error) => Err(unknown(signal, &error)),
        }
    }

    pub(crate) async fn told(
        &self,
        signal: &SignalRequest,
        record: &SignalRecord,
        reply: SignalReply,
    ) -> Result<Signalled, ProducerError> {
        let run = signal.run.clone();
        match reply {
            SignalReply::Delivered { interrupt, is_vote, .. } => {
                let outcome = if is_vote { SignalOutcome::Voted } else { SignalOutcome::Delivered };
                Ok(signalled(run, Some(interrupt), record, outcome))
            }
            SignalReply::Kept { .. } => Ok(signalled(run, None, record, SignalOutcome::Kept)),
            SignalReply::Voted => {
                let by = printable(&record.by, 80);
                Err(Refusal::new(Code::Voted, "by", format!("is {by}, who has voted already"))
                    .into())
            }
            SignalReply::NotFound => Err(ProducerError::no_run(&run)),
            SignalReply::NoQuestion => Err(no_question(&self.head(&run).await?)),
            SignalReply::ArgsChanged { args_hash } => {
                Err(ProducerError::ArgsChanged { run, args_hash })
            }
            SignalReply::Ambiguous { open } => {
                let known = self.open_questions(&run).await?;
                let text = |id: &InterruptId| {
                    let question = known.iter().find(|open| open.interrupt == *id);
                    question.map(Open::question).unwrap_or_default()
                };
                let open = open.into_iter().map(|id| (id.clone(), text(&id))).collect();
                Err(ProducerError::Ambiguous { run, open })
            }
            SignalReply::Decided { record } => {
                let first = SignalRecord::decode(&record)
                    .map_err(|fault| ProducerError::corrupt(&run, fault))?;
                let decision = decision_of(&first);
                let interrupt = interrupt_of(&signal.address);
                Err(ProducerError::Decided { run, interrupt, decision })
            }
            SignalReply::Final { status } => self.too_late(signal, Some(status)).await,
            SignalReply::NotOpen | SignalReply::Moved => self.too_late(signal, None).await,
        }
    }

    /// Tells from the journal why a question does not take an answer.
    async fn too_late(
        &self,
        signal: &SignalRequest,
        end: Option<RunStatus>,
    ) -> Result<Signalled, ProducerError> {
        let run = signal.run.clone();
        let interrupt = interrupt_of(&signal.address);
        let (decision, was_open) = match &interrupt {
            Some(interrupt) => self.decision(&run, interrupt).await?,
            None => (None, false),
        };
        Err(match (end, decision, interrupt) {
            (Some(status), decision, _) => ProducerError::RunFinal { run, status, decision },
            (None, Some(decision), interrupt) => {
                ProducerError::Decided { run, interrupt, decision }
            }
            (None, None, Some(interrupt)) if was_open => {
                ProducerError::StaleInterrupt { run, interrupt }
            }
            (None, None, Some(interrupt)) => {
                ProducerError::NotFound { what: "interrupt", id: interrupt.to_string() }
            }
            (None, None, None) => no_question(&self.head(&run).await?),
        })
    }
}

/// Whether the question does not take an answer any more, or the run does not.
pub(crate) fn is_too_late(error: &ProducerError) -> bool {
    let has_voted = matches!(error, ProducerError::Refused(no) if no.code() == Code::Voted);
    has_voted
        || matches!(
            error,
            ProducerError::RunFinal { .. }
                | ProducerError::Decided { .. }
                | ProducerError::StaleInterrupt { .. }
                | ProducerError::NoQuestion { .. }
                | ProducerError::NotFound { .. }
                | ProducerError::Store(_)
        )
}

pub(crate) fn no_session(target: &Target) -> ProducerError {
    let (Target::Run(id) | Target::Session(id)) = target;
    ProducerError::NotFound { what: "session", id: printable(id, 80) }
}

fn unknown(signal: &SignalRequest, error: &ProducerError) -> ProducerError {
    let (request, cause) = (signal.request.clone(), error.to_string());
    ProducerError::UnknownOutcome { request, cause }
}

fn interrupt_of(address: &Address) -> Option<InterruptId> {
    match address {
        Address::Interrupt(interrupt) => Some(interrupt.clone()),
        Address::Gate(_) | Address::Unopened { .. } | Address::Only => None,
    }
}

pub(crate) fn no_question(head: &RunHead) -> ProducerError {
    let why = format!("the run {} is {} and asks nothing", head.run, head.status().as_str());
    ProducerError::NoQuestion { run: head.run.clone(), why }
}

pub(crate) fn decision_of(record: &SignalRecord) -> Decision {
    Decision { answer: record.answer.clone(), by: record.by.clone(), at_ms: record.at_ms }
}

pub(crate) fn signalled(
    run: RunId,
    interrupt: Option<InterruptId>,
    record: &SignalRecord,
    outcome: SignalOutcome,
) -> Signalled {
    let (decided_by, at) = (record.by.clone(), Timestamp(record.at_ms));
    Signalled { run, interrupt, outcome, decided_by, at }
}
