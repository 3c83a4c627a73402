//! The record of decisions: who decided what, when, from where, and about what; and the proof
//! that nobody altered it.

use holdpoint_graph::{Answer, Event, Interrupt, InterruptId, InterruptKind, RunId, State};
use holdpoint_storage::{Chain, Cursor, RunFilter};
use serde::Serialize;
use serde_json::Value;

use crate::{Producer, ProducerError, Timestamp, journal::decode};

/// What happened to a question.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditAct {
    /// It opened.
    Opened,
    /// It was shown anew, since the state was edited.
    ShownAnew,
    /// Those who are asked were reminded.
    Reminded,
    /// Somebody voted.
    Voted,
    /// It was decided.
    Decided,
    /// Somebody edited the state of the parked run.
    Edited,
}

/// One line of a run's audit trail.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AuditRow {
    /// The run.
    pub run: RunId,
    /// The event that records it.
    pub seq: u64,
    /// When, by the store's clock.
    pub at: Timestamp,
    /// What happened.
    pub act: AuditAct,
    /// The question; none for an edit.
    pub interrupt: Option<InterruptId>,
    /// The gate's name, for gates.
    pub gate: Option<String>,
    /// The node that waits.
    pub node: Option<String>,
    /// What it is about.
    pub kind: Option<InterruptKind>,
    /// The question as it was shown at the time.
    pub question: Option<String>,
    /// What the decision was about, when the question names keys of the state.
    pub args: Option<State>,
    /// The hash of that.
    pub args_hash: Option<String>,
    /// The answer, the vote, or the edit.
    pub answer: Option<Value>,
    /// Who.
    pub by: Option<String>,
    /// The groups they spoke for.
    pub groups: Vec<String>,
    /// Their comment.
    pub comment: Option<String>,
    /// Where it came from.
    pub from: Option<String>,
}

/// What a check of one run's journal found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditVerdict {
    /// The run.
    pub run: RunId,
    /// The records that are as they were written.
    pub events: u64,
    /// The decisions and votes among them.
    pub decisions: u64,
    /// The first record that is not, and how that is seen.
    pub fault: Option<AuditFault>,
}

/// The first record of a journal that was altered, cut, moved or lost.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AuditFault {
    /// Its number.
    pub seq: u64,
    /// What is wrong with it.
    pub why: String,
}

impl Producer {
    /// The audit trail of a run: every question with its votes, reminders and decision, in order.
    ///
    /// # Errors
    /// `E_NOT_FOUND`; `E_STATE_CORRUPT` when the journal was altered.
    pub async fn audit(&self, run: &RunId) -> Result<Vec<AuditRow>, ProducerError> {
        let journal = self.journal(run).await?;
        let mut open: Vec<Interrupt> = Vec::new();
        let mut rows = Vec::new();
        for record in &journal.records {
            let row = |act, about: Option<&Interrupt>| AuditRow {
                run: run.clone(),
                seq: record.seq,
                at: Timestamp(record.at_ms),
                ..row(run, act, about)
            };
            match &record.event {
                Event::InterruptOpened { interrupt } => {
                    open.push(interrupt.as_ref().clone());
                    rows.push(row(AuditAct::Opened, Some(interrupt)));
                }
                Event::InterruptReminded { interrupt, .. } => {
                    rows.push(row(AuditAct::Reminded, find(&open, interrupt)));
                }
                Event::VoteCast { interrupt, vote, .. } => {
                    rows.push(given(row(AuditAct::Voted, find(&open, interrupt)), vote));
                }
                Event::InterruptAnswered { interrupt, answer, .. } => {
                    rows.push(given(row(AuditAct::Decided, find(&open, interrupt)), answer));
                }
                Event::StateEdited { patches, by, shown } => {
                    let answer = serde_json::to_value(patches).ok();
                    let by = Some(by.clone());
                    rows.push(AuditRow { answer, by, ..row(AuditAct::Edited, None) });
                    for anew in shown {
                        open.retain(|known| known.interrupt != anew.interrupt);
                        open.push(anew.clone());
                        rows.push(row(AuditAct::ShownAnew, Some(anew)));
                    }
                }
                _ => {}
            }
        }
        Ok(rows)
    }

    /// Checks that the journal of a run is as it was written: every record's hash names the one
    /// before it, and the newest is the one that the run's head names.
    ///
    /// # Errors
    /// `E_NOT_FOUND`. What is wrong with the journal is in the verdict.
    pub async fn verify(&self, run: &RunId) -> Result<AuditVerdict, ProducerError> {
        let mut chain = Chain::start(self.namespace(), run);
        let (mut decisions, mut records) = (0, Vec::new());
        let mut verdict = AuditVerdict { run: run.clone(), events: 0, decisions: 0, fault: None };
        loop {
            let part = self.page(run, chain.seq()).await?;
            let checked = decode(&mut chain, &part, &mut records);
            let decided = |event: &Event| {
                matches!(event, Event::InterruptAnswered { .. } | Event::VoteCast { .. })
            };
            decisions += records.drain(..).filter(|record| decided(&record.event)).count() as u64;
            (verdict.events, verdict.decisions) = (chain.seq(), decisions);
            let fault = |why: String| Some(AuditFault { seq: chain.seq(), why });
            if let Err(error) = checked {
                verdict.fault = fault(error.to_string());
                return Ok(verdict);
            }
            if chain.seq() >= part.head.seq {
                return Ok(verdict);
            }
            if part.records.is_empty() {
                verdict.fault = fault("it is missing".to_owned());
                return Ok(verdict);
            }
        }
    }

    /// Checks the journals of one page of runs; gives where the next page begins.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn verify_page(
        &self,
        after: Option<&Cursor>,
        limit: usize,
    ) -> Result<(Vec<AuditVerdict>, Option<Cursor>), ProducerError> {
        let filter = RunFilter::default();
        let page = self.insist(None, || self.store().runs(&filter, after, limit)).await?;
        let mut verdicts = Vec::new();
        for head in &page.rows {
            match self.verify(&head.run).await {
                Ok(verdict) => verdicts.push(verdict),
                // It was pruned meanwhile.
                Err(ProducerError::NotFound { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        Ok((verdicts, page.next))
    }
}

fn find<'a>(open: &'a [Interrupt], id: &InterruptId) -> Option<&'a Interrupt> {
    open.iter().find(|known| known.interrupt == *id)
}

fn row(run: &RunId, act: AuditAct, about: Option<&Interrupt>) -> AuditRow {
    AuditRow {
        run: run.clone(),
        seq: 0,
        at: Timestamp(0),
        act,
        interrupt: about.map(|open| open.interrupt.clone()),
        gate: about.and_then(|open| open.gate.clone()),
        node: about.and_then(|open| Some(open.task.as_ref()?.node.clone())),
        kind: about.map(|open| open.kind),
        question: about.map(|open| open.question.clone()),
        args: about.and_then(|open| open.args.clone()),
        args_hash: about.map(|open| open.args_hash.clone()),
        answer: None,
        by: None,
        groups: Vec::new(),
        comment: None,
        from: None,
    }
}

fn given(row: AuditRow, answer: &Answer) -> AuditRow {
    AuditRow {
        answer: Some(answer.value.clone()),
        by: Some(answer.by.clone()),
        groups: answer.groups.clone(),
        comment: answer.comment.clone(),
        from: answer.from.clone(),
        args_hash: answer.args_hash.clone().or(row.args_hash),
        ..row
    }
}
