//! The two sides of the comparison: the model and the backend, and what must be equal.

use std::{collections::BTreeMap, fmt::Debug};

use holdpoint_graph::{RunId, RunStatus, WorkerId};

use crate::{
    AppendKind, AppendReply, AppendRequest, ClaimRequest, ClaimedRun, CommitReply, CommitRequest,
    Durability, GateOrder, InboxEntry, Lease, Level, NewRun, OpenQuestion, QuestionFilter, RunHead,
    SessionRecord, SignalReply, SignalRequest, SignalsReply,
    conformance::{Model, id, world::World},
};

/// A difference, in words.
pub(super) type Agreed<T = ()> = Result<T, String>;

/// A lease as each side granted it: the epochs are different.
#[derive(Debug, Clone)]
pub(super) struct Granted {
    pub(super) model: Lease,
    pub(super) real: Lease,
}

/// A request that was sent, to be sent again.
#[derive(Debug, Clone)]
pub(super) enum Sent {
    Enqueue(Vec<NewRun>, bool),
    Commit(Box<CommitRequest>, Lease),
    Signal(SignalRequest),
    SignalAll(Vec<SignalRequest>),
    Append(AppendRequest, AppendKind),
}

/// Both sides, and what was sent to them so far.
pub(super) struct Sides {
    pub(super) model: Model,
    pub(super) world: World,
    pub(super) now_ms: i64,
    pub(super) granted: Vec<Granted>,
    pub(super) sent: Vec<Sent>,
    /// The last claim of each worker that took something.
    pub(super) claims: BTreeMap<WorkerId, ClaimRequest>,
    pub(super) ticks: u32,
    count: u64,
    name: String,
}

impl Sides {
    pub(super) fn new(world: World, name: &str) -> Self {
        Self {
            model: Model::default(),
            world,
            now_ms: 1_700_000_000_000,
            granted: Vec::new(),
            sent: Vec::new(),
            claims: BTreeMap::new(),
            ticks: 0,
            count: 0,
            name: name.to_owned(),
        }
    }

    /// A number that rises: ids of requests and questions sort by their age.
    pub(super) fn next(&mut self) -> String {
        self.count += 1;
        format!("{}-{:05}", self.name, self.count)
    }

    /// The lease that holds the run now.
    pub(super) fn live(&self) -> Vec<&Granted> {
        let is_live = |granted: &&Granted| {
            let head = self.model.head(&granted.model.run);
            head.is_some_and(|head| {
                head.status() == RunStatus::Running && head.epoch == granted.model.pair.epoch
            })
        };
        self.granted.iter().filter(is_live).collect()
    }

    /// Compares what both sides claimed, and notes the leases.
    pub(super) fn grant(&mut self, model: &[ClaimedRun], real: &[ClaimedRun]) -> Agreed {
        let shown = |runs: &[ClaimedRun]| runs.iter().map(claimed).collect::<Vec<_>>();
        same("the claimed runs", &shown(model), &shown(real))?;
        for (model, real) in model.iter().zip(real) {
            let pair = Granted { model: model.lease.clone(), real: real.lease.clone() };
            let is_known = self
                .granted
                .iter()
                .any(|known| known.model == pair.model && known.real == pair.real);
            if !is_known {
                self.granted.push(pair);
            }
        }
        Ok(())
    }

    /// Compares the stored heads, questions and sessions.
    pub(super) async fn compare(&self) -> Agreed {
        for expected in self.model.heads() {
            let run = &expected.run;
            let real = self.world.head(run).await.map_err(|error| error.to_string())?;
            let real = real.ok_or_else(|| format!("{run} is not stored"))?;
            same(&format!("the head of {run}"), &head(expected), &head(&real))?;
        }
        for session in ["s0", "s1"].map(id) {
            let real = self.world.session(&session).await.map_err(|error| error.to_string())?;
            let expected: Option<SessionRecord> = self.model.session(&session);
            same(&format!("session {session}"), &expected, &real)?;
        }
        self.compare_questions(&QuestionFilter::default()).await
    }

    /// Compares the questions that a filter shows.
    async fn compare_questions(&self, filter: &QuestionFilter) -> Agreed {
        let mut real: Vec<(RunId, String)> = Vec::new();
        let mut after = None;
        loop {
            let page = self.world.questions(filter, after.as_ref(), 7).await;
            let page = page.map_err(|error| error.to_string())?;
            let row = |row: OpenQuestion| (row.head.run, row.interrupt.to_string());
            real.extend(page.rows.into_iter().map(row));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        let what = format!("the open questions of {filter:?}");
        let mut expected = self.model.shown(filter);
        // The model knows no times: what opened first is another question.
        if filter.order == GateOrder::Deadline {
            let deadline = |(run, id): &(RunId, String)| {
                let of_run = self.model.questions(run).iter();
                let mut question = of_run.filter(|open| open.interrupt.as_str() == id);
                question.next().and_then(|open| open.deadline_ms).unwrap_or(i64::MAX)
            };
            let deadlines: Vec<i64> = real.iter().map(deadline).collect();
            if !deadlines.is_sorted() {
                return Err(format!("{what} have deadlines {deadlines:?}"));
            }
        }
        real.sort();
        expected.sort();
        same(&what, &expected, &real)
    }

    /// Compares each list of questions.
    async fn compare_lists(&self) -> Agreed {
        let all = QuestionFilter::default;
        let person = |name: &str| QuestionFilter { assignee: Some(name.to_owned()), ..all() };
        let tag = Some("payload=1".to_owned());
        for filter in [
            all(),
            QuestionFilter { graph: Some(id("g0")), ..all() },
            QuestionFilter { graph: Some(id("g1")), ..all() },
            person("p0"),
            QuestionFilter { groups: vec!["m0".to_owned()], ..person("p1") },
            QuestionFilter { tag: tag.clone(), ..all() },
            QuestionFilter { graph: Some(id("g0")), tag, ..person("p1") },
        ] {
            for order in [GateOrder::Oldest, GateOrder::Deadline] {
                self.compare_questions(&QuestionFilter { order, ..filter.clone() }).await?;
            }
        }
        Ok(())
    }

    /// Compares journals, inboxes and counts, and lets the backend check itself.
    pub(super) async fn compare_details(&self) -> Agreed {
        self.compare_lists().await?;
        for expected in self.model.heads() {
            let run = &expected.run;
            let real =
                self.world.journal(run, 0, 1_000).await.map_err(|error| error.to_string())?;
            let real = real.map(|part| part.records).unwrap_or_default();
            same(&format!("the journal of {run}"), &self.model.journal(run).to_vec(), &real)?;
            let real = self.world.inbox(run).await.map_err(|error| error.to_string())?;
            same(&format!("the inbox of {run}"), &self.model.inbox(run), &sorted(real))?;
        }
        let stats = self.world.stats().await.map_err(|error| error.to_string())?;
        let count = |status: RunStatus| {
            self.model.heads().filter(|head| head.status() == status).count() as u64
        };
        let expected: Vec<_> = RunStatus::ALL.map(|status| (status, count(status))).to_vec();
        same("the counts", &expected, &stats.counts)?;
        let findings = self.world.check().await.map_err(|error| error.to_string())?;
        let bad: Vec<_> = findings.iter().filter(|found| found.level == Level::Bad).collect();
        same("what the check finds", &Vec::new(), &bad)
    }
}

/// Equal, or the difference in words.
pub(super) fn same<T: PartialEq + Debug>(what: &str, model: &T, real: &T) -> Agreed {
    if model == real {
        return Ok(());
    }
    Err(format!("{what} differ\n  model:   {model:?}\n  backend: {real:?}"))
}

/// What of a head must be equal: not the times and not the epoch. The wish of an ended run is
/// past.
fn head(head: &RunHead) -> String {
    let wish = if head.status().is_terminal() { None } else { head.cancel };
    format!(
        "{:?} {:?} seq {} {:?} snapshot {} tail {} priority {} pin {:?} claims {} row {} life {} \
         losses {} wish {wish:?} started {} finished {}",
        head.status(),
        head.reason(),
        head.seq,
        head.hash.0,
        head.snapshot_seq,
        head.tail_bytes,
        head.priority,
        head.fingerprint,
        head.claims,
        head.lost_in_row,
        head.lost_in_life,
        head.losses.len(),
        head.started_at_ms.is_some(),
        head.finished_at_ms.is_some(),
    )
}

fn claimed(run: &ClaimedRun) -> String {
    format!(
        "{} {} {} {} {:?} {:?} {:?} {:?} {:?}",
        run.lease.run,
        run.lease.worker,
        run.lease.pair.nonce,
        head(&run.head),
        run.payload,
        run.snapshot,
        run.journal,
        sorted(run.inbox.clone()),
        run.session_last,
    )
}

fn sorted(mut inbox: Vec<InboxEntry>) -> Vec<InboxEntry> {
    inbox.sort_by(|a, b| a.key.cmp(&b.key));
    inbox
}

const DURABILITY: Durability = Durability::Buffered;

/// The reply without its time and level.
pub(super) fn commit_reply(reply: CommitReply) -> CommitReply {
    match reply {
        CommitReply::Done { status, inbox, .. } => {
            CommitReply::Done { now_ms: 0, status, inbox: sorted(inbox), durability: DURABILITY }
        }
        CommitReply::Fenced | CommitReply::Sequence { .. } | CommitReply::Cancelled => reply,
    }
}

/// The reply without its level.
pub(super) fn append_reply(reply: AppendReply) -> AppendReply {
    match reply {
        AppendReply::Done { status, .. } => AppendReply::Done { status, durability: DURABILITY },
        AppendReply::Cancelling
        | AppendReply::Moved
        | AppendReply::WrongState { .. }
        | AppendReply::NotFound => reply,
    }
}

/// The reply without its level.
pub(super) fn signal_reply(reply: SignalReply) -> SignalReply {
    let durability = DURABILITY;
    match reply {
        SignalReply::Delivered { interrupt, is_vote, is_repeat, .. } => {
            SignalReply::Delivered { interrupt, is_vote, is_repeat, durability }
        }
        SignalReply::Kept { .. } => SignalReply::Kept { durability },
        SignalReply::NotFound
        | SignalReply::Final { .. }
        | SignalReply::NotOpen
        | SignalReply::NoQuestion
        | SignalReply::Moved
        | SignalReply::Ambiguous { .. }
        | SignalReply::ArgsChanged { .. }
        | SignalReply::Voted
        | SignalReply::Decided { .. } => reply,
    }
}

/// The reply without its levels.
pub(super) fn signals_reply(reply: SignalsReply) -> SignalsReply {
    match reply {
        SignalsReply::Taken(replies) => {
            SignalsReply::Taken(replies.into_iter().map(signal_reply).collect())
        }
        SignalsReply::Refused { index, reply } => {
            SignalsReply::Refused { index, reply: signal_reply(reply) }
        }
    }
}
