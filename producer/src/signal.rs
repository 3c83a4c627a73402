//! Answers: to an open question, or to a gate that is yet to open.

use holdpoint_graph::{
    InterruptId, RequestId, RunId, RunStatus, SessionId, check_answer, printable,
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
        let record = SignalRecord {
            answer,
            by: options.by.clone(),
            at_ms: self.now_ms().await?,
            comment: options.comment.clone(),
            request: request.to_string(),
        };
        if key.is_some() {
            for run in &runs {
                if let Some(done) = self.done_before(run, &record).await? {
                    return done;
                }
            }
        }
        let Some(run) = runs.into_iter().next() else {
            let what = "session";
            let (Target::Run(id) | Target::Session(id)) = &options.target;
            return Err(ProducerError::NotFound { what, id: printable(id, 80) });
        };
        let head = self.head(&run).await?;
        let address = self.resolved(&head, address, &record.answer).await?;
        let args_hash = options.args_hash.clone();
        let body = record.encode();
        let signal = SignalRequest { run, request, address, args_hash, record: body };
        let reply = self.send(&signal, &record).await?;
        if key.is_some() {
            // Stored it is; only whether it is this answer, or another one of the same request.
            let waits = self.waits_already(&signal.run, &record).await;
            if let Some(done) = waits.map_err(|error| unknown(&signal, &error))? {
                return done;
            }
        }
        Ok(reply)
    }

    /// The run that is meant, and behind it another that a repeated request may have been for.
    async fn target(&self, target: &Target) -> Result<Vec<RunId>, ProducerError> {
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
    /// and checks the answer against the question's schema.
    async fn resolved(
        &self,
        head: &RunHead,
        address: Address,
        answer: &Value,
    ) -> Result<Address, ProducerError> {
        let run = &head.run;
        if head.status().is_terminal() {
            let decision = match &address {
                Address::Interrupt(interrupt) => self.decision(run, interrupt).await?.0,
                Address::Gate(_) | Address::Only => None,
            };
            let status = head.status();
            return Err(ProducerError::RunFinal { run: run.clone(), status, decision });
        }
        let open = self.open_questions(run).await?;
        let fits = |open: &&Open| match &address {
            Address::Interrupt(interrupt) => open.interrupt == *interrupt,
            Address::Gate(gate) => open.gate.as_ref() == Some(gate),
            Address::Only => true,
        };
        let found: Vec<&Open> = open.iter().filter(fits).collect();
        match (found.as_slice(), &address) {
            ([], Address::Interrupt(_)) => Ok(address),
            ([], Address::Gate(gate)) => {
                // It answers the first opening, and that may be over.
                if let Some((interrupt, decision)) = self.gate_decision(run, gate).await? {
                    let (run, interrupt) = (run.clone(), Some(interrupt));
                    return Err(ProducerError::Decided { run, interrupt, decision });
                }
                let schema = self.gate_schema(head, gate).await?;
                check_answer(schema.as_ref(), answer)?;
                Ok(address)
            }
            ([], Address::Only) => Err(no_question(head)),
            ([one], _) => {
                check_answer(one.schema.as_ref(), answer)?;
                Ok(Address::Interrupt(one.interrupt.clone()))
            }
            (several, _) => {
                let named = several.iter().map(|o| (o.interrupt.clone(), o.question.clone()));
                Err(ProducerError::Ambiguous { run: run.clone(), open: named.collect() })
            }
        }
    }

    /// Sends the answer. After an unknown outcome it looks for it before it sends it again: the
    /// run may have taken it meanwhile and stand at its next question.
    async fn send(
        &self,
        signal: &SignalRequest,
        record: &SignalRecord,
    ) -> Result<Signalled, ProducerError> {
        let mut tries = self.tries();
        let mut is_unknown = false;
        loop {
            let call = self.store().signal(signal);
            let error = match self.attempt(Some(&signal.request), &tries, call).await {
                Ok(reply) => {
                    let told = self.told(signal, record, reply).await;
                    return self.unless_taken(signal, record, told).await;
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
                return done;
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

    async fn told(
        &self,
        signal: &SignalRequest,
        record: &SignalRecord,
        reply: SignalReply,
    ) -> Result<Signalled, ProducerError> {
        let run = signal.run.clone();
        match reply {
            SignalReply::Delivered { interrupt, .. } => Ok(signalled(run, Some(interrupt), record)),
            SignalReply::Kept { .. } => Ok(signalled(run, None, record)),
            SignalReply::NotFound => Err(ProducerError::no_run(&run)),
            SignalReply::NoQuestion => Err(no_question(&self.head(&run).await?)),
            SignalReply::ArgsChanged { args_hash } => {
                Err(ProducerError::ArgsChanged { run, args_hash })
            }
            SignalReply::Ambiguous { open } => {
                let known = self.open_questions(&run).await?;
                let text = |id: &InterruptId| {
                    let question = known.iter().find(|open| open.interrupt == *id);
                    question.map(|open| open.question.clone()).unwrap_or_default()
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
            SignalReply::NotOpen => self.too_late(signal, None).await,
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
const fn is_too_late(error: &ProducerError) -> bool {
    matches!(
        error,
        ProducerError::RunFinal { .. }
            | ProducerError::Decided { .. }
            | ProducerError::StaleInterrupt { .. }
            | ProducerError::NoQuestion { .. }
            | ProducerError::NotFound { .. }
            | ProducerError::Store(_)
    )
}

fn unknown(signal: &SignalRequest, error: &ProducerError) -> ProducerError {
    let (request, cause) = (signal.request.clone(), error.to_string());
    ProducerError::UnknownOutcome { request, cause }
}

fn interrupt_of(address: &Address) -> Option<InterruptId> {
    match address {
        Address::Interrupt(interrupt) => Some(interrupt.clone()),
        Address::Gate(_) | Address::Only => None,
    }
}

fn no_question(head: &RunHead) -> ProducerError {
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
) -> Signalled {
    let outcome = match &interrupt {
        Some(_) => SignalOutcome::Delivered,
        None => SignalOutcome::Kept,
    };
    let (decided_by, at) = (record.by.clone(), Timestamp(record.at_ms));
    Signalled { run, interrupt, outcome, decided_by, at }
}
