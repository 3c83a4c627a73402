//! Lists that people page through: runs and open questions.

use std::collections::BTreeMap;

use holdpoint_graph::{
    Code, GraphId, InterruptKind, Refusal, RunId, RunStatus, fingerprint::of_parts, limits,
};
use holdpoint_storage::{Cursor, GateOrder, OpenQuestion, QuestionFilter, RunFilter, RunHead};
use serde::Serialize;

use crate::{
    InterruptView, Producer, ProducerError, Timestamp,
    questions::stored,
    view::{ReasonView, session_of, tags_of},
};

/// Rows, and where the next page begins; none when this was the last.
#[derive(Debug, Clone, PartialEq)]
pub struct Rows<T> {
    /// The rows.
    pub rows: Vec<T>,
    /// The cursor of the next page: opaque text.
    pub next: Option<String>,
}

/// A run in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunRow {
    /// The run.
    pub run: RunId,
    /// Its session; the run's own id when it has no named one.
    pub session: String,
    /// Its graph.
    pub graph: GraphId,
    /// Its state.
    pub status: RunStatus,
    /// Why it failed: the code alone, the rest is in its journal.
    pub reason: Option<ReasonView>,
    /// 0 to 9, higher first.
    pub priority: u8,
    /// Its tags.
    pub tags: BTreeMap<String, String>,
    /// When it was stored.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
    /// When it is due, when it waits for a time.
    pub due_at: Option<Timestamp>,
}

impl From<&RunHead> for RunRow {
    fn from(head: &RunHead) -> Self {
        Self {
            run: head.run.clone(),
            session: session_of(head),
            graph: head.graph.clone(),
            status: head.status(),
            reason: head.reason().map(|code| ReasonView { code, message: None, node: None }),
            priority: head.priority,
            tags: tags_of(head),
            created_at: Timestamp(head.created_at_ms),
            updated_at: Timestamp(head.updated_at_ms),
            due_at: head.due_at_ms().map(Timestamp),
        }
    }
}

/// An open question in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct GateRow {
    /// The run.
    pub run: RunId,
    /// Its session.
    pub session: String,
    /// Its graph.
    pub graph: GraphId,
    /// The question.
    pub open: InterruptView,
}

impl Serialize for GateRow {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::Error as _;
        let mut row = serde_json::to_value(&self.open).map_err(S::Error::custom)?;
        if let Some(fields) = row.as_object_mut() {
            fields.insert("run".into(), self.run.as_str().into());
            fields.insert("session".into(), self.session.as_str().into());
            fields.insert("graph".into(), self.graph.as_str().into());
        }
        row.serialize(serializer)
    }
}

/// Which open questions a list shows, and in which order: all conditions hold together; one that
/// is empty holds always.
///
/// Whoever asks for questions of a person or of groups gets those that name this person or one of
/// these groups, and those that name nobody, because they are asked of everybody.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GateFilter {
    /// Of runs of this graph.
    pub graph: Option<GraphId>,
    /// Asked of this person.
    pub assignee: Option<String>,
    /// Asked of one of these groups, or of the person; at most
    /// [`GROUPS_MAX`](limits::GROUPS_MAX).
    pub groups: Vec<String>,
    /// Of runs with this tag, as `KEY=VALUE`.
    pub tag: Option<String>,
    /// Opened before this time, in ms since 1970 by the store's clock.
    pub opened_before_ms: Option<i64>,
    /// The order; the oldest first by default.
    pub order: GateOrder,
}

impl GateFilter {
    fn checked(&self) -> Result<QuestionFilter, Refusal> {
        let (count, max) = (self.groups.len(), limits::GROUPS_MAX);
        if count > max {
            let message = format!("are {count}, the most is {max}");
            return Err(Refusal::new(Code::Range, "groups", message));
        }
        Ok(QuestionFilter {
            run: None,
            graph: self.graph.clone(),
            assignee: self.assignee.clone(),
            groups: self.groups.clone(),
            tag: self.tag.clone(),
            opened_before_ms: self.opened_before_ms,
            order: self.order,
        })
    }
}

impl Producer {
    /// Runs, newest first. A page may be short and still have a next one.
    ///
    /// # Errors
    /// `E_CURSOR` for a cursor that is none; `E_RANGE` for the limit.
    pub async fn list(
        &self,
        filter: &RunFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Rows<RunRow>, ProducerError> {
        let limit = rows_max(limit)?;
        let mut after = after.map(parse_cursor).transpose()?;
        let mut rows = Vec::new();
        let tries = self.tries();
        loop {
            let left = limit - rows.len();
            let call = || self.store().runs(filter, after.as_ref(), left);
            let page = self.insist(None, call).await?;
            rows.extend(page.rows.iter().map(RunRow::from));
            after = page.next;
            if after.is_none() || rows.len() >= limit || tries.is_over() {
                return Ok(Rows { rows, next: after.as_ref().map(format_cursor) });
            }
        }
    }

    /// Open questions in the order of the filter. The store finds them in its lists, so that a page
    /// costs the same wherever it stands and however many questions are open; one may be short and
    /// still have a next one. Questions that open, close or are shown anew meanwhile disturb no
    /// page: what stays open is shown once. A cursor goes with its order.
    ///
    /// # Errors
    /// As [`Producer::list`]; `E_RANGE` also for too many groups.
    pub async fn gates(
        &self,
        filter: &GateFilter,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Rows<GateRow>, ProducerError> {
        let (filter, limit) = (filter.checked()?, rows_max(limit)?);
        let mut after = after.map(parse_cursor).transpose()?;
        let mut rows = Vec::new();
        let tries = self.tries();
        loop {
            let left = limit - rows.len();
            let call = || self.store().questions(&filter, after.as_ref(), left);
            let page = self.insist(None, call).await?;
            rows.extend(page.rows.iter().map(gate_row));
            after = page.next;
            if after.is_none() || rows.len() >= limit || tries.is_over() {
                return Ok(Rows { rows, next: after.as_ref().map(format_cursor) });
            }
        }
    }
}

/// A row of a question; one that cannot be read is shown by its ids, so that it can be answered.
fn gate_row(question: &OpenQuestion) -> GateRow {
    let open = match stored(question) {
        Some(asked) => InterruptView::from(&asked),
        None => InterruptView {
            interrupt: question.interrupt.clone(),
            node: None,
            gate: None,
            kind: InterruptKind::Ask,
            question: "a question that this version of the program cannot read".to_owned(),
            schema: None,
            allowed: Vec::new(),
            opened_at: Timestamp(question.opened_at_ms),
            deadline: None,
            assignees: Vec::new(),
            groups: Vec::new(),
            quorum: 1,
            votes: Vec::new(),
            args: None,
            editable: Vec::new(),
            comment_on: Vec::new(),
            reminder: None,
            args_hash: String::new(),
        },
    };
    let head = &question.head;
    GateRow {
        run: head.run.clone(),
        session: session_of(head),
        graph: head.graph.clone(),
        open: InterruptView { opened_at: Timestamp(question.opened_at_ms), ..open },
    }
}

/// The rows of one page, within the limit.
pub(crate) fn rows_max(limit: usize) -> Result<usize, Refusal> {
    let max = limits::PAGE_MAX;
    if (1..=max).contains(&limit) {
        return Ok(limit);
    }
    Err(Refusal::new(Code::Range, "limit", format!("is {limit}, it must be 1 to {max}")))
}

/// The text of a cursor: a checksum, the time and the id in hexadecimal digits.
pub(crate) fn format_cursor(cursor: &Cursor) -> String {
    let mut text = format!("{:016x}", cursor.at_ms);
    text.extend(cursor.id.bytes().map(|byte| format!("{byte:02x}")));
    format!("{}{text}", check(&text))
}

fn check(text: &str) -> String {
    of_parts(&["cursor", text]).chars().take(CHECK_CHARS).collect()
}

const CHECK_CHARS: usize = 6;

/// Reads a cursor that a list gave.
///
/// # Errors
/// `E_CURSOR` for any other text.
pub(crate) fn parse_cursor(text: &str) -> Result<Cursor, Refusal> {
    let read = || {
        let (sum, body) = text.split_at_checked(CHECK_CHARS)?;
        if text.len() > 2_000 || sum != check(body) {
            return None;
        }
        let (time, id) = body.split_at_checked(16)?;
        let at_ms = u64::from_str_radix(time, 16).ok()?.cast_signed();
        let byte = |at: usize| u8::from_str_radix(id.get(at..at + 2)?, 16).ok();
        let bytes: Option<Vec<u8>> = (0..id.len()).step_by(2).map(byte).collect();
        Some(Cursor { at_ms, id: String::from_utf8(bytes?).ok()? })
    };
    read().ok_or_else(|| {
        let message = format!("is {}, which no list gave", holdpoint_graph::shown(text, 40));
        Refusal::new(Code::Cursor, "after", message)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_comes_back_and_garbage_does_not() {
        for (at_ms, id) in [(0, ""), (1_790_000_000_123, "run-1~@."), (-1, "ä")] {
            let cursor = Cursor { at_ms, id: id.to_owned() };
            assert_eq!(parse_cursor(&format_cursor(&cursor)), Ok(cursor));
        }
        let good = format_cursor(&Cursor { at_ms: 5, id: "r".to_owned() });
        let altered = good.replace("72", "73");
        for bad in ["", "x", "äöü", "../../etc", &good[1..], &altered, &format!("{good}7")] {
            let refusal = parse_cursor(bad).expect_err(bad);
            assert_eq!((refusal.code(), refusal.field()), (Code::Cursor, "after"));
        }
    }
}
