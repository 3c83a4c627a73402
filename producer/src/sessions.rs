//! Sessions: looking at them, and deleting them.

use holdpoint_graph::{GraphId, InterruptId, RunId, RunStatus, SessionId, limits};
use holdpoint_storage::{RunFilter, SessionRecord, StoreError};
use serde::Serialize;

use crate::{
    Producer, ProducerError, Rows,
    list::{format_cursor, parse_cursor, rows_max},
};

/// A session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionView {
    /// Its id.
    pub session: SessionId,
    /// The graph it belongs to.
    pub graph: GraphId,
    /// The run that is active.
    pub active_run: Option<RunId>,
    /// The last run that ended and counts.
    pub last_run: Option<RunId>,
    /// How many runs it has.
    pub runs: u64,
    /// The runs that wait behind the active one, in order.
    pub waiting: Vec<RunId>,
}

impl From<SessionRecord> for SessionView {
    fn from(record: SessionRecord) -> Self {
        Self {
            session: record.session,
            graph: record.graph,
            active_run: record.active,
            last_run: record.last,
            runs: record.runs,
            waiting: record.waiting,
        }
    }
}

impl Producer {
    /// Sessions by id. A page may be short and still have a next one.
    ///
    /// # Errors
    /// `E_CURSOR` for a cursor that is none; `E_RANGE` for the limit.
    pub async fn sessions(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Rows<SessionView>, ProducerError> {
        let limit = rows_max(limit)?;
        let after = after.map(parse_cursor).transpose()?;
        let page = self.insist(None, || self.store().sessions(after.as_ref(), limit)).await?;
        let rows = page.rows.into_iter().map(SessionView::from).collect();
        Ok(Rows { rows, next: page.next.as_ref().map(format_cursor) })
    }

    /// One session.
    ///
    /// # Errors
    /// `E_NOT_FOUND`.
    pub async fn session(&self, session: &SessionId) -> Result<SessionView, ProducerError> {
        let record = self.insist(None, || self.store().session(session)).await?;
        record.map(SessionView::from).ok_or_else(|| no_session(session))
    }

    /// Deletes a session and its runs. With `cancel` its open runs are cancelled first.
    ///
    /// # Errors
    /// `E_NOT_FOUND`; `E_SESSION_BUSY` while a run is active, or could not be ended in time.
    pub async fn delete_session(
        &self,
        session: &SessionId,
        cancel: Option<&str>,
    ) -> Result<(), ProducerError> {
        let mut tries = self.tries();
        loop {
            match self.insist(None, || self.store().delete_session(session)).await? {
                None => return Err(no_session(session)),
                Some(true) => return Ok(()),
                Some(false) => {}
            }
            let open = self.open_runs(session).await?;
            if let Some(by) = cancel {
                // The last first: else each would become active when the one before it ends.
                for run in open.iter().rev() {
                    self.cancel_if_open(run, by).await?;
                }
            }
            let may_wait = cancel.is_some() || open.is_empty();
            if !may_wait || !tries.again().await {
                return Err(self.busy(session, open.into_iter().next()).await?);
            }
        }
    }

    async fn busy(
        &self,
        session: &SessionId,
        run: Option<RunId>,
    ) -> Result<ProducerError, ProducerError> {
        let Some(run) = run else {
            let cause = format!("the session {session} could not be deleted in time");
            return Err(StoreError::Unavailable { cause }.into());
        };
        let open = self.open_questions(&run).await?;
        let question: Option<InterruptId> = open.into_iter().next().map(|open| open.interrupt);
        Ok(ProducerError::SessionBusy { session: session.clone(), run, question })
    }

    /// The runs of a session that have not ended, the active one first.
    async fn open_runs(&self, session: &SessionId) -> Result<Vec<RunId>, ProducerError> {
        let view = self.session(session).await?;
        let mut open: Vec<RunId> = view.active_run.into_iter().chain(view.waiting).collect();
        // A delayed run joins the order only when it is due.
        let filter = RunFilter {
            statuses: vec![RunStatus::Scheduled],
            session: Some(session.clone()),
            ..RunFilter::default()
        };
        let mut after: Option<String> = None;
        loop {
            let page = self.list(&filter, after.as_deref(), limits::PAGE_MAX).await?;
            for row in page.rows {
                if !open.contains(&row.run) {
                    open.push(row.run);
                }
            }
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(open),
            }
        }
    }

    async fn cancel_if_open(&self, run: &RunId, by: &str) -> Result<(), ProducerError> {
        match self.cancel(run, by).await {
            Ok(_) | Err(ProducerError::RunFinal { .. } | ProducerError::NotFound { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

fn no_session(session: &SessionId) -> ProducerError {
    ProducerError::NotFound { what: "session", id: session.to_string() }
}
