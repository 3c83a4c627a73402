//! How an operation becomes a request to both sides.

use holdpoint_graph::{Ballot, End, ReasonCode, RunId, WorkerId};
use proptest::sample::Index;

use super::{
    op::{Becomes, Cast, Item, Kind, LeasePick, Op, StartTime, To, Write},
    side::{
        Agreed, Granted, Sent, Sides, append_reply, commit_reply, same, signal_reply, signals_reply,
    },
};
use crate::{
    Address, AppendKind, AppendRequest, ClaimRequest, ClaimedRun, CommitRequest, Disposition,
    InboxEntry, Lane, Lease, NewRun, OpenedInterrupt, SignalRequest, Vote, When,
    conformance::{
        id,
        world::{HOUR_MS, claim_request, new_run, question, structure, tick_request},
    },
};

/// A time that no test lives to see.
const FAR_MS: i64 = 4_000_000_000_000;

impl Sides {
    /// Runs one operation on both sides and compares the replies.
    pub(super) async fn run(&mut self, op: &Op) -> Agreed {
        self.now_ms += 1;
        match op {
            Op::Enqueue { items, partial } => {
                let items = items.iter().map(|item| self.new_run(item)).collect();
                self.send(Sent::Enqueue(items, *partial)).await
            }
            Op::Claim { worker, max, oldest_first } => {
                let request = claim_request(&format!("w{worker}"), *max);
                let oldest_first = *oldest_first;
                self.claim(ClaimRequest { lanes: lanes(), oldest_first, ..request }).await
            }
            Op::RepeatClaim { worker } => self.repeat_claim(&id(&format!("w{worker}"))).await,
            Op::Renew { lease } => self.renew(lease).await,
            Op::Release { lease } => self.release(lease).await,
            Op::Commit { lease, write, becomes } => {
                let Some(granted) = self.lease(lease) else { return Ok(()) };
                let request = self.commit(&granted, write, *becomes);
                self.send(Sent::Commit(Box::new(request), granted.real)).await
            }
            Op::Signal { run, to, args, ballot } => {
                let request = self.signal(&self.any_run(run), to, *args, *ballot);
                self.send(Sent::Signal(request)).await
            }
            Op::SignalAll { run, answers } => {
                let run = self.any_run(run);
                let one = |(to, args, ballot): &(To, Option<bool>, Option<Cast>)| {
                    self.signal(&run, to, *args, *ballot)
                };
                let requests = answers.iter().map(one).collect();
                self.send(Sent::SignalAll(requests)).await
            }
            Op::Append { run, kind, is_moved } => {
                let Some(request) = self.append(run, *is_moved) else { return Ok(()) };
                let kind = self.append_kind(&request.run, *kind);
                self.send(Sent::Append(request, kind)).await
            }
            Op::StartNow { run } => {
                let run = self.any_run(run);
                let real = self.world.start_now(&run).await.map_err(|error| error.to_string())?;
                same("start_now", &self.model.start_now(&run), &real)
            }
            Op::Lost { worker } => self.lost(&id(&format!("w{worker}"))).await,
            Op::Tick => self.tick().await,
            Op::Pause { queue, paused } => {
                let queue = id(&format!("q{queue}"));
                self.model.pause(&queue, *paused);
                self.world.pause(&queue, *paused).await.map_err(|error| error.to_string())
            }
            Op::Repeat { back } => match self.sent.len().checked_sub(*back) {
                Some(at) => self.send(self.sent[at].clone()).await,
                None => Ok(()),
            },
        }
    }

    /// Sends a request to both sides, and keeps it to be repeated.
    async fn send(&mut self, sent: Sent) -> Agreed {
        self.sent.push(sent.clone());
        let (model, world, now_ms) = (&mut self.model, &self.world, self.now_ms);
        match sent {
            Sent::Enqueue(items, partial) => {
                let real =
                    world.enqueue(&items, partial).await.map_err(|error| error.to_string())?;
                same("enqueue", &model.enqueue(&items, partial, now_ms), &real.items)
            }
            Sent::Commit(request, lease) => {
                let real = CommitRequest { lease, ..(*request).clone() };
                let real = world.commit(&real).await.map_err(|error| error.to_string())?;
                let model = model.commit(&request, now_ms).ok_or("the model has no such run")?;
                same("commit", &commit_reply(model), &commit_reply(real))
            }
            Sent::Signal(request) => {
                let real = world.signal(&request).await.map_err(|error| error.to_string())?;
                let model = model.signal(&request, now_ms);
                same("signal", &signal_reply(model), &signal_reply(real))
            }
            Sent::SignalAll(requests) => {
                let real = world.signal_all(&requests).await.map_err(|error| error.to_string())?;
                let model = model.signal_all(&requests, now_ms);
                same("signal_all", &signals_reply(model), &signals_reply(real))
            }
            Sent::Append(request, kind) => {
                let real =
                    world.append(&request, &kind).await.map_err(|error| error.to_string())?;
                let model = model.append(&request, &kind, now_ms);
                same("append", &append_reply(model), &append_reply(real))
            }
        }
    }

    async fn claim(&mut self, request: ClaimRequest) -> Agreed {
        let real = self.world.claim(&request).await.map_err(|error| error.to_string())?;
        let model = self.model.claim(&request, self.now_ms);
        self.grant(&model.runs, &real.runs)?;
        let due = (model.next_due_ms.is_some(), real.next_due_ms.is_some());
        same("whether a timer comes next", &due.0, &due.1)?;
        if !model.runs.is_empty() {
            self.claims.insert(request.worker.clone(), request);
        }
        Ok(())
    }

    /// The worker's last claim again; the order of its answer is free.
    async fn repeat_claim(&mut self, worker: &WorkerId) -> Agreed {
        let Some(request) = self.claims.get(worker).cloned() else { return Ok(()) };
        let real = self.world.claim(&request).await.map_err(|error| error.to_string())?;
        let model = self.model.claim(&request, self.now_ms);
        self.grant(&by_run(model.runs), &by_run(real.runs))
    }

    async fn renew(&mut self, lease: &LeasePick) -> Agreed {
        let Some(granted) = self.lease(lease) else { return Ok(()) };
        let real = self.world.renew(std::slice::from_ref(&granted.real), HOUR_MS).await;
        let real = real.map_err(|error| error.to_string())?;
        let model = self.model.renew(&granted.model, HOUR_MS, self.now_ms);
        same("renew", &vec![model], &real)
    }

    async fn release(&mut self, lease: &LeasePick) -> Agreed {
        let Some(granted) = self.lease(lease) else { return Ok(()) };
        let real = self.world.release(&granted.real).await.map_err(|error| error.to_string())?;
        same("release", &self.model.release(&granted.model, self.now_ms), &real)
    }

    async fn lost(&mut self, worker: &WorkerId) -> Agreed {
        let delays = [0, 0, HOUR_MS];
        let real = self.world.lost(worker, "gone", &delays).await;
        let mut real = real.map_err(|error| error.to_string())?;
        real.sort();
        same("lost", &self.model.lost(worker, "gone", &delays, self.now_ms), &real)
    }

    /// A tick; only two in a sequence, because ticks must follow each other at a distance.
    async fn tick(&mut self) -> Agreed {
        self.ticks += 1;
        match self.ticks {
            1 => {}
            2 => self.world.let_pass(300).await,
            _ => return Ok(()),
        }
        let request = tick_request();
        let real = self.world.tick(&request).await.map_err(|error| error.to_string())?;
        let model = self.model.tick(&request, self.now_ms);
        same("reaped", &model.reaped, &real.reaped)?;
        same("fired", &model.fired, &real.fired)?;
        self.grant(&by_run(model.closing), &by_run(real.closing))
    }

    fn lease(&self, pick: &LeasePick) -> Option<Granted> {
        let live = self.live();
        match pick {
            LeasePick::Live(index) if !live.is_empty() => Some((*index.get(&live)).clone()),
            LeasePick::Live(index) | LeasePick::Any(index) if !self.granted.is_empty() => {
                Some(index.get(&self.granted).clone())
            }
            LeasePick::Live(_) | LeasePick::Any(_) => None,
        }
    }

    /// A run of the pool, there or not.
    fn any_run(&self, pick: &Index) -> RunId {
        let known: Vec<RunId> = self.model.heads().map(|head| head.run.clone()).collect();
        if known.is_empty() { id("r0") } else { pick.get(&known).clone() }
    }

    fn new_run(&mut self, item: &Item) -> NewRun {
        let (start, expires, deadline) = match item.time {
            StartTime::Now => (When::In(0), None, None),
            StartTime::Later => (When::In(HOUR_MS), None, None),
            StartTime::Expired => (When::In(0), Some(When::In(0)), Some(When::In(HOUR_MS))),
            StartTime::Overdue => (When::In(0), None, Some(When::In(0))),
        };
        NewRun {
            request: id(&self.next()),
            graph: id(&format!("g{}", item.graph)),
            fingerprint: item.pin.map(version),
            queue: id(&format!("q{}", item.queue)),
            session: item.session.map(|session| id(&format!("s{session}"))),
            if_busy: item.if_busy,
            payload_hash: format!("payload-{}", item.payload),
            key: item.key.map(|key| id(&format!("k{key}"))),
            priority: item.priority,
            start,
            expires,
            deadline,
            queue_depth_max: item.depth_max,
            tags: vec![format!("payload={}", item.payload)],
            ..new_run(&format!("r{}", item.run))
        }
    }

    fn commit(&mut self, granted: &Granted, write: &Write, becomes: Becomes) -> CommitRequest {
        let run = &granted.model.run;
        let head = self.model.head(run).expect("a granted run is there").clone();
        let lease: &Lease = &granted.model;
        let draft = self.world.draft_on(lease, &head, write.records, disposition(becomes));
        let inbox = if write.takes_inbox { self.model.inbox(run) } else { Vec::new() };
        let consumed: Vec<String> = inbox.into_iter().map(|entry| entry.key).collect();
        let is_taken = |question: &&OpenedInterrupt| {
            let own = InboxEntry::of_interrupt(&question.interrupt);
            let gate = question.gate.as_deref().map(InboxEntry::of_gate);
            consumed.contains(&own) || gate.is_some_and(|gate| consumed.contains(&gate))
        };
        let open = self.model.questions(run).to_vec();
        let oldest = if write.closes_oldest { open.first() } else { None };
        let closing = open.iter().filter(is_taken).chain(oldest);
        let closed = closing.map(|question| question.interrupt.clone()).collect();
        let opened = write.opens.map(|gate| {
            let gate = gate.map(|gate| format!("gate{gate}"));
            asked_of(question(&self.next(), gate.as_deref()), write.asks)
        });
        // Votes that are taken out of the inbox stand with their questions from then on.
        let votes = consumed.iter().map(|key| InboxEntry { key: key.clone(), record: Vec::new() });
        let votes: Vec<(String, Vote)> = votes
            .filter_map(|entry| entry.vote().map(|(id, vote)| (id.to_owned(), vote)))
            .collect();
        let shown = open.iter().filter_map(|question| {
            let of_it = votes.iter().filter(|(id, _)| *id == question.interrupt.as_str());
            let mut anew = question.clone();
            anew.votes.extend(of_it.map(|(_, vote)| vote.clone()));
            (anew != *question).then_some(anew)
        });
        let opened: Vec<OpenedInterrupt> = shown.chain(opened).collect();
        CommitRequest {
            request: id(&self.next()),
            from: draft.from + u64::from(write.is_misplaced),
            snapshot: write.has_snapshot.then(|| format!("snapshot of {}", head.seq).into_bytes()),
            consumed,
            opened,
            closed,
            is_progress: write.is_progress,
            pin: write.pin.map(version),
            ..draft
        }
    }

    fn signal(
        &mut self,
        run: &RunId,
        to: &To,
        args: Option<bool>,
        ballot: Option<Cast>,
    ) -> SignalRequest {
        let open = self.model.questions(run);
        let address = match to {
            To::Open(index) if !open.is_empty() => {
                Address::Interrupt(index.get(open).interrupt.clone())
            }
            To::Open(_) | To::Unknown => Address::Interrupt(id("unknown")),
            To::Gate(gate) => Address::Gate(format!("gate{gate}")),
            To::Only => Address::Only,
        };
        let right = open.first().map(|question| question.args_hash.clone());
        let args_hash = args.map(|is_right| match right {
            Some(right) if is_right => right,
            Some(_) | None => "other".to_owned(),
        });
        let request = self.next();
        let record = format!("answer {request}").into_bytes();
        let ballot = ballot.map(|cast| Ballot {
            voter: format!("voter{}", cast.voter),
            choice: format!("choice{}", cast.choice),
            needed: cast.needed,
        });
        SignalRequest {
            run: run.clone(),
            request: id(&request),
            address,
            args_hash,
            ballot,
            record,
        }
    }

    /// An edit shows the oldest question anew, to others.
    fn append_kind(&self, run: &RunId, kind: Kind) -> AppendKind {
        match kind {
            Kind::Cancel => AppendKind::Cancel { rollback: false },
            Kind::Rollback => AppendKind::Cancel { rollback: true },
            Kind::Edit(asks) => {
                let oldest = self.model.questions(run).first().cloned();
                let shown = oldest.map(|question| asked_of(question, asks));
                AppendKind::Edit { shown: shown.into_iter().collect() }
            }
            Kind::Redrive => AppendKind::Redrive,
            Kind::Migrate(from, to) => AppendKind::Migrate { from: version(from), to: version(to) },
        }
    }

    fn append(&mut self, run: &Index, is_moved: bool) -> Option<AppendRequest> {
        let head = self.model.head(&self.any_run(run))?.clone();
        let request = self.world.append_on(&head);
        let from = request.from + u64::from(is_moved);
        Some(AppendRequest { request: id(&self.next()), from, ..request })
    }
}

fn by_run(mut runs: Vec<ClaimedRun>) -> Vec<ClaimedRun> {
    runs.sort_by(|a, b| a.lease.run.cmp(&b.lease.run));
    runs
}

fn version(number: u8) -> holdpoint_graph::Fingerprint {
    structure(&format!("v{number}"))
}

/// Every lane that a run of a sequence can come to.
fn lanes() -> Vec<Lane> {
    let mut lanes = Vec::new();
    for queue in ["q0", "q1"] {
        for graph in ["g0", "g1"] {
            for fingerprint in [None, Some(version(0)), Some(version(1))] {
                lanes.push(Lane { queue: id(queue), graph: id(graph), fingerprint });
            }
        }
    }
    lanes
}

fn disposition(becomes: Becomes) -> Disposition {
    let finish = |end| Disposition::Finish { end };
    match becomes {
        Becomes::Continue => Disposition::Continue,
        Becomes::Park => Disposition::Park { wake_at_ms: None },
        Becomes::ParkUntilPast => Disposition::Park { wake_at_ms: Some(1_000) },
        Becomes::ParkUntilLater => Disposition::Park { wake_at_ms: Some(FAR_MS) },
        Becomes::RescheduleNow => Disposition::Reschedule { until_ms: 1_000 },
        Becomes::RescheduleLater => Disposition::Reschedule { until_ms: FAR_MS },
        Becomes::Complete => finish(End::Completed),
        Becomes::Fail => finish(End::Failed(ReasonCode::NodeError)),
        Becomes::Cancel => finish(End::Cancelled),
    }
}

/// The question asked of some of two people and a group, with a deadline or none.
fn asked_of(question: OpenedInterrupt, asks: u8) -> OpenedInterrupt {
    let has = |bit: u8| asks >> bit & 1 == 1;
    let name = |bit, name: &str| has(bit).then(|| name.to_owned());
    OpenedInterrupt {
        assignees: name(0, "p0").into_iter().chain(name(1, "p1")).collect(),
        groups: name(2, "m0").into_iter().collect(),
        deadline_ms: has(3).then_some(FAR_MS + i64::from(asks % 3)),
        ..question
    }
}
