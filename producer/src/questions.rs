//! What is known of questions: the open ones, the gates of a published graph, and the answers
//! that were given.

use holdpoint_graph::{Answer, Event, Interrupt, InterruptId, RequestId, RunId, limits, nearest};
use holdpoint_storage::{
    GraphRecord, InboxEntry, OpenQuestion, QuestionFilter, RunHead, SignalRecord,
};
use serde_json::Value;

use crate::{
    Decision, Producer, ProducerError, SignalOutcome, Signalled,
    signal::{decision_of, signalled},
};

/// An open question; what is asked is none when this program cannot read it.
pub(crate) struct Open {
    pub(crate) interrupt: InterruptId,
    pub(crate) asked: Option<Interrupt>,
}

impl Open {
    pub(crate) fn gate(&self) -> Option<&str> {
        self.asked.as_ref()?.gate.as_deref()
    }

    pub(crate) fn question(&self) -> String {
        self.asked.as_ref().map(|asked| asked.question.clone()).unwrap_or_default()
    }
}

/// A question as it was stored; none when this program cannot read it.
pub(crate) fn stored(question: &OpenQuestion) -> Option<Interrupt> {
    let read = serde_json::from_slice::<Interrupt>(&question.body);
    read.inspect_err(|fault| {
        let (run, interrupt) = (&question.head.run, &question.interrupt);
        tracing::warn!(%run, %interrupt, %fault, "a stored question cannot be read");
    })
    .ok()
}

impl Producer {
    /// The open questions of a run, oldest first.
    pub(crate) async fn open_questions(&self, run: &RunId) -> Result<Vec<Open>, ProducerError> {
        let filter = QuestionFilter::of_run(run);
        let mut open = Vec::new();
        let mut after = None;
        loop {
            let call = || self.store().questions(&filter, after.as_ref(), limits::PAGE_MAX);
            let page = self.insist(None, call).await?;
            let known =
                |row: &OpenQuestion| Open { interrupt: row.interrupt.clone(), asked: stored(row) };
            open.extend(page.rows.iter().map(known));
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(open),
            }
        }
    }

    /// An edit that the run could not take is refused while somebody is there to hear it.
    pub(crate) async fn check_edit(
        &self,
        run: &RunId,
        asked: &Interrupt,
        answer: &Answer,
    ) -> Result<(), ProducerError> {
        if asked.is_edit(answer) {
            asked.edit(&self.newest(run).await?.1, answer)?;
        }
        Ok(())
    }

    /// The decision on a question, and whether it was ever open.
    pub(crate) async fn decision(
        &self,
        run: &RunId,
        interrupt: &InterruptId,
    ) -> Result<(Option<Decision>, bool), ProducerError> {
        let mut was_open = false;
        for record in self.journal(run).await?.records {
            if let Event::InterruptOpened { interrupt: open } = &record.event {
                was_open |= open.interrupt == *interrupt;
            }
            if let Event::InterruptAnswered { interrupt: answered, answer, .. } = record.event
                && answered == *interrupt
            {
                let (answer, by, at_ms) = (answer.value, answer.by, answer.at_ms);
                return Ok((Some(Decision { answer, by, at_ms }), true));
            }
        }
        Ok((None, was_open))
    }

    /// The decision on the newest opening of a gate.
    pub(crate) async fn gate_decision(
        &self,
        run: &RunId,
        gate: &str,
    ) -> Result<Option<(InterruptId, Decision)>, ProducerError> {
        let (mut opened, mut decided) = (None, None);
        for record in self.journal(run).await?.records {
            match record.event {
                Event::InterruptOpened { interrupt } if interrupt.gate.as_deref() == Some(gate) => {
                    opened = Some(interrupt.interrupt);
                }
                Event::InterruptAnswered { interrupt, answer, .. }
                    if opened.as_ref() == Some(&interrupt) =>
                {
                    let (answer, by, at_ms) = (answer.value, answer.by, answer.at_ms);
                    decided = Some((interrupt, Decision { answer, by, at_ms }));
                }
                _ => {}
            }
        }
        Ok(decided)
    }

    /// The reply to a request that the run has, in its inbox or its journal.
    pub(crate) async fn done_before(
        &self,
        run: &RunId,
        record: &SignalRecord,
    ) -> Result<Option<Result<Signalled, ProducerError>>, ProducerError> {
        let mut found = self.all_done_before(run, std::slice::from_ref(record)).await?;
        Ok(found.pop().flatten())
    }

    /// The replies to those of several requests that the run has, in its inbox or its journal.
    pub(crate) async fn all_done_before(
        &self,
        run: &RunId,
        records: &[SignalRecord],
    ) -> Result<Vec<Option<Result<Signalled, ProducerError>>>, ProducerError> {
        let mut found = self.all_waiting(run, records).await?;
        if found.iter().all(Option::is_some) {
            return Ok(found);
        }
        let journal = self.journal(run).await?;
        for (found, record) in found.iter_mut().zip(records) {
            if found.is_none() {
                *found = journal.records.iter().find_map(|taken| {
                    let (interrupt, first, outcome) = taken_with(&taken.event, &record.request)?;
                    Some(repeated(run, Some(interrupt), &first, record, outcome))
                });
            }
        }
        Ok(found)
    }

    /// The reply to a request that waits in the run's inbox.
    pub(crate) async fn waits_already(
        &self,
        run: &RunId,
        record: &SignalRecord,
    ) -> Result<Option<Result<Signalled, ProducerError>>, ProducerError> {
        Ok(self.all_waiting(run, std::slice::from_ref(record)).await?.pop().flatten())
    }

    /// The replies to those of several requests that wait in the run's inbox.
    pub(crate) async fn all_waiting(
        &self,
        run: &RunId,
        records: &[SignalRecord],
    ) -> Result<Vec<Option<Result<Signalled, ProducerError>>>, ProducerError> {
        let inbox = self.insist(None, || self.store().inbox(run)).await?;
        let known = inbox
            .iter()
            .filter_map(|entry| Some((entry, SignalRecord::decode(&entry.record).ok()?)));
        let known: Vec<(&InboxEntry, SignalRecord)> = known.collect();
        let reply = |record: &SignalRecord| {
            let (entry, first) = known.iter().find(|(_, first)| first.request == record.request)?;
            let (id, outcome) = match (entry.vote(), entry.key.strip_prefix('i')) {
                (Some((id, _)), _) => (Some(id), SignalOutcome::Voted),
                (None, Some(id)) => (Some(id), SignalOutcome::Delivered),
                (None, None) => (None, SignalOutcome::Kept),
            };
            let interrupt = id.and_then(|id| InterruptId::new(id).ok());
            Some(repeated(run, interrupt, first, record, outcome))
        };
        Ok(records.iter().map(reply).collect())
    }

    /// What is known of a gate that is not open, from the drawing of the run's graph; none when no
    /// drawing is known. A gate that the graph does not have is refused.
    pub(crate) async fn known_gate(
        &self,
        head: &RunHead,
        gate: &str,
    ) -> Result<Option<KnownGate>, ProducerError> {
        for is_fresh in [false, true] {
            let published = self.published(is_fresh).await?;
            let mut drawings: Vec<&GraphRecord> = published
                .iter()
                .filter(|record| record.graph == head.graph)
                .filter(|record| head.fingerprint.as_ref().is_none_or(|f| *f == record.fingerprint))
                .collect();
            drawings.sort_by_key(|record| std::cmp::Reverse(record.published_at_ms));
            let known: Vec<Vec<KnownGate>> =
                drawings.iter().filter_map(|record| gates(&record.drawing)).collect();
            if known.is_empty() {
                return Ok(None);
            }
            let mut all = known.iter().flatten();
            if let Some(known) = all.find(|known| known.name == gate) {
                return Ok(Some(known.clone()));
            }
            if is_fresh {
                let near = nearest(gate, known.iter().flatten().map(|known| known.name.as_str()));
                let near = near.map_or_else(String::new, |near| format!(", did you mean {near}?"));
                let why = format!("the graph {} has no gate {gate}{near}", head.graph);
                return Err(ProducerError::NoQuestion { run: head.run.clone(), why });
            }
        }
        Ok(None)
    }
}

/// The answer that a request brought, when the event is that it was taken.
fn taken_with(event: &Event, by: &str) -> Option<(InterruptId, SignalRecord, SignalOutcome)> {
    let (interrupt, answer, request, outcome) = match event {
        Event::InterruptAnswered { interrupt, answer, request, .. } => {
            (interrupt, answer, request, SignalOutcome::Delivered)
        }
        Event::VoteCast { interrupt, vote, request } => {
            (interrupt, vote, request, SignalOutcome::Voted)
        }
        _ => return None,
    };
    if request != by {
        return None;
    }
    let Answer { value: answer, by, at_ms, comment, groups, from, args_hash: _ } = answer.clone();
    let request = request.clone();
    let first = SignalRecord { answer, by, at_ms, comment, groups, from, request };
    Some((interrupt.clone(), first, outcome))
}

/// The same request again: with the same answer it gets the same reply, else it is refused.
fn repeated(
    run: &RunId,
    interrupt: Option<InterruptId>,
    first: &SignalRecord,
    again: &SignalRecord,
    outcome: SignalOutcome,
) -> Result<Signalled, ProducerError> {
    if first.answer == again.answer {
        return Ok(signalled(run.clone(), interrupt, first, outcome));
    }
    match RequestId::new(&first.request) {
        Ok(request) => {
            Err(ProducerError::RequestConflict { request, decision: decision_of(first) })
        }
        Err(refusal) => Err(refusal.into()),
    }
}

/// A gate, as far as a drawing tells.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct KnownGate {
    pub(crate) name: String,
    pub(crate) schema: Option<Value>,
    pub(crate) quorum: u64,
}

/// The gates of a drawing; none when it does not say of each node what its gate is.
fn gates(drawing: &str) -> Option<Vec<KnownGate>> {
    let drawing: Value = serde_json::from_str(drawing).ok()?;
    let mut found = Vec::new();
    for node in drawing.get("nodes")?.as_array()? {
        let gate = node.get("gate")?;
        if gate.is_object() {
            let name = gate.get("name").or_else(|| node.get("id"))?.as_str()?;
            let schema = gate.get("schema").filter(|schema| !schema.is_null());
            let quorum = gate.get("quorum").and_then(Value::as_u64).unwrap_or(1);
            found.push(KnownGate { name: name.to_owned(), schema: schema.cloned(), quorum });
        }
    }
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gates_are_read_from_a_drawing_that_has_them() {
        let drawing = r#"{"nodes": [{"id": "a", "gate": null},
            {"id": "c", "gate": {"name": "ship", "schema": {"type": "object"}}},
            {"id": "d", "gate": {"schema": null, "quorum": 2}}]}"#;
        let found = gates(drawing).unwrap();
        let schema = serde_json::json!({ "type": "object" });
        let ship = KnownGate { name: "ship".to_owned(), schema: Some(schema), quorum: 1 };
        let d = KnownGate { name: "d".to_owned(), schema: None, quorum: 2 };
        assert_eq!(found, [ship, d]);
        for unknown in ["{}", "no JSON", r#"{"nodes": ["a"]}"#, r#"{"nodes": [{"id": "a"}]}"#] {
            assert_eq!(gates(unknown), None, "{unknown}");
        }
    }
}
