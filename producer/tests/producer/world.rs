//! A store in memory, a producer, and a worker that does as it is told.
#![expect(clippy::unwrap_used, reason = "a test fails by a panic")]

use std::sync::Arc;

use holdpoint_graph::{
    Answer, Beginning, Budget, END, End, Event, Fingerprint, Interrupt, InterruptId, InterruptKind,
    Namespace, Outcome, Patch, Progress, Question, Routing, RunId, RunStatus, State, TaskRef,
    WorkerId,
};
use holdpoint_producer::{Producer, ProducerError, RunRequest};
use holdpoint_storage::{
    Chain, ClaimRequest, ClaimedRun, CommitReply, CommitRequest, Disposition, GraphRecord, Lane,
    OpenedInterrupt, Random, SignalRecord, Store, WorkerRecord,
};
use holdpoint_storage_sqlite::{Location, SqliteConfig, SqliteStore};
use serde_json::{Value, json};

/// A store with a producer at it.
pub(crate) struct World {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) producer: Producer,
}

pub(crate) fn run(id: &str) -> RunId {
    RunId::new(id).unwrap()
}

pub(crate) fn question_id(id: &str) -> InterruptId {
    InterruptId::new(id).unwrap()
}

pub(crate) fn print(id: &str) -> Fingerprint {
    Fingerprint::from_text(&format!("{id:0>26}"))
}

/// The code of an error, as scripts see it.
pub(crate) fn code<T: std::fmt::Debug>(result: Result<T, ProducerError>) -> &'static str {
    result.expect_err("it was to be refused").code().as_str()
}

pub(crate) fn json_of(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap()
}

impl World {
    pub(crate) async fn new() -> Self {
        Self::in_namespace("test").await
    }

    pub(crate) async fn in_namespace(name: &str) -> Self {
        let namespace = Namespace::new(name).unwrap();
        let config = SqliteConfig::new(Location::Memory, namespace.clone());
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(config).await.unwrap());
        let producer = Producer::new(Arc::clone(&store));
        Self { store, producer }
    }

    /// Stores a run of graph `g`.
    pub(crate) async fn enqueued(&self, id: &str) -> RunId {
        let receipt = self.producer.enqueue(&RunRequest::new("g").run(id)).await.unwrap();
        assert!(receipt.created);
        receipt.run
    }

    /// Publishes graph `g` with a gate `gate` that takes `{"approve": bool}`.
    pub(crate) async fn publish(&self) {
        let drawing = json!({ "nodes": [
            { "id": "a", "gate": null },
            { "id": "gate", "gate": { "name": "gate", "schema": approval() } },
            { "id": "board", "gate": { "name": "board", "schema": approval(), "quorum": 2 } },
        ]});
        let record = GraphRecord {
            graph: "g".parse().unwrap(),
            fingerprint: print("1"),
            drawing: drawing.to_string(),
            published_at_ms: 0,
        };
        self.store.publish(&record).await.unwrap();
    }

    /// A worker that gives a sign of life and serves graph `g` as `fingerprint`.
    pub(crate) async fn beat(&self, graph: &str, fingerprint: &str) {
        let record = WorkerRecord {
            worker: "w1".parse().unwrap(),
            host: "host".to_owned(),
            pid: 7,
            since_ms: 1,
            beat_at_ms: 0,
            is_draining: false,
            graphs: vec![(graph.parse().unwrap(), print(fingerprint))],
            queues: vec!["default".parse().unwrap()],
            concurrency: 4,
            lost_after_ms: 60_000,
            trouble: None,
            runs: Vec::new(),
        };
        self.store.beat(&record).await.unwrap();
    }

    /// Claims the next run of graph `g`, whatever it is pinned to.
    pub(crate) async fn claim(&self) -> Owner {
        let lane = |fingerprint| Lane {
            queue: "default".parse().unwrap(),
            graph: "g".parse().unwrap(),
            fingerprint,
        };
        let request = ClaimRequest {
            worker: "w1".parse().unwrap(),
            nonce: Random.nonce(),
            lanes: vec![lane(None), lane(Some(print("1"))), lane(Some(print("2")))],
            max: 1,
            lease_ms: 60_000,
            oldest_first: false,
            bytes_max: 1 << 30,
        };
        let mut claims = self.store.claim(&request).await.unwrap();
        Owner::new(Arc::clone(&self.store), claims.runs.remove(0), claims.now_ms)
    }

    /// A run that began and stands at node `a`.
    pub(crate) async fn begun(&self, id: &str) -> Owner {
        self.enqueued(id).await;
        let mut owner = self.claim().await;
        owner.begin().await;
        owner
    }

    /// A run that is parked at its gate; the id of the question.
    pub(crate) async fn parked(&self, id: &str) -> (RunId, String) {
        let mut owner = self.begun(id).await;
        let question = format!("{id}-q1");
        owner.ask(&question).await;
        owner.park().await;
        (run(id), question)
    }

    pub(crate) async fn status(&self, run: &RunId) -> RunStatus {
        self.store.head(run).await.unwrap().unwrap().status()
    }
}

pub(crate) fn approval() -> Value {
    json!({
        "type": "object",
        "properties": { "approve": { "type": "boolean" } },
        "required": ["approve"],
    })
}

/// The question of a gate.
pub(crate) fn question(id: &str, task: &TaskRef, gate: &str) -> Interrupt {
    let asked = Question::new("Go on?").schema(approval()).assignee("ann");
    let id = InterruptId::new(id).unwrap();
    Interrupt {
        task: Some(task.clone()),
        gate: Some(gate.to_owned()),
        kind: InterruptKind::Gate,
        opened_at_ms: 1_000,
        args_hash: "hash".to_owned(),
        ..Interrupt::of_question(id, &asked, &State::new())
    }
}

/// A claimed run in the hands of a worker.
pub(crate) struct Owner {
    store: Arc<dyn Store>,
    pub(crate) claimed: ClaimedRun,
    chain: Chain,
    progress: Progress,
    now_ms: i64,
    events: Vec<Event>,
}

impl Owner {
    fn new(store: Arc<dyn Store>, claimed: ClaimedRun, now_ms: i64) -> Self {
        let namespace = Namespace::new("test").unwrap();
        let mut chain = Chain::start(&namespace, &claimed.head.run);
        let mut progress = Progress::new();
        for record in &claimed.journal {
            progress.apply(&chain.decode(record).unwrap().event).unwrap();
        }
        let losses = claimed.head.losses.iter().map(|loss| Event::WorkerLost {
            worker: loss.worker.clone(),
            epoch: loss.epoch,
            claimed_at_ms: loss.claimed_at_ms,
            lost_at_ms: loss.lost_at_ms,
            evidence: loss.evidence.clone(),
        });
        let (worker, epoch) = (claimed.lease.worker.clone(), claimed.lease.pair.epoch);
        let here = Event::Claimed { worker, epoch, at_ms: now_ms };
        let events = losses.chain([here]).collect();
        Self { store, claimed, chain, progress, now_ms, events }
    }

    /// The task at which the run stands.
    pub(crate) fn task(&self) -> TaskRef {
        self.progress.tasks().first().unwrap().task.clone()
    }

    /// Adds an event to the next commit.
    pub(crate) fn event(&mut self, event: Event) -> &mut Self {
        self.events.push(event);
        self
    }

    /// Commits what was added.
    pub(crate) async fn commit(&mut self, disposition: Disposition) -> RunStatus {
        let (from, previous) = (self.chain.seq(), self.chain.hash());
        let before: Vec<Interrupt> = self.progress.open().cloned().collect();
        let events = std::mem::take(&mut self.events);
        let epoch = self.claimed.lease.pair.epoch;
        let mut records = Vec::new();
        let mut consumed = Vec::new();
        for event in &events {
            self.progress.apply(event).unwrap();
            records.push(self.chain.encode(self.now_ms, epoch, event));
            if let Event::InterruptAnswered { interrupt, .. } = event {
                consumed.push(format!("i{interrupt}"));
            }
        }
        let open = |id: &InterruptId| self.progress.question(id).is_some();
        let is_new = |asked: &&Interrupt| !before.contains(asked);
        let request = CommitRequest {
            lease: self.claimed.lease.clone(),
            request: Random.request_id(),
            from,
            previous,
            records,
            hash: self.chain.hash(),
            snapshot: None,
            consumed,
            opened: self.progress.open().filter(is_new).map(OpenedInterrupt::of).collect(),
            closed: before.iter().map(|b| b.interrupt.clone()).filter(|id| !open(id)).collect(),
            is_progress: true,
            pin: self.progress.fingerprint().cloned(),
            lease_ms: 60_000,
            disposition,
        };
        let reply = self.store.commit(&request).await.unwrap();
        let CommitReply::Done { status, .. } = reply else { panic!("not taken: {reply:?}") };
        status
    }

    pub(crate) async fn begin(&mut self) {
        let input: Value = serde_json::from_slice(&self.claimed.payload).unwrap();
        let state = State::from_json(input.get("initial").cloned().unwrap_or_default()).unwrap();
        self.event(Event::RunStarted {
            graph: "g".parse().unwrap(),
            fingerprint: print("1"),
            max_steps: 1_000,
            budget: Budget::default(),
            begin: Beginning::Entry { state, entry: "a".to_owned() },
        });
        self.commit(Disposition::Continue).await;
    }

    /// The task ends, sets `key` to 1, and the run goes on at `next`.
    pub(crate) async fn step(&mut self, key: &str, next: &str) {
        let task = self.task();
        let patches = vec![Patch::set(key, 1)];
        let next = Routing::To(next.to_owned());
        self.event(Event::NodeCompleted { task, patches, next, counted: true });
        self.commit(Disposition::Continue).await;
    }

    /// The task asks at its gate.
    pub(crate) async fn ask(&mut self, id: &str) {
        let interrupt = question(id, &self.task(), "gate");
        self.event(Event::InterruptOpened { interrupt: Box::new(interrupt) });
        self.commit(Disposition::Continue).await;
    }

    pub(crate) async fn park(&mut self) {
        self.event(Event::RunParked { wake_at_ms: None });
        let status = self.commit(Disposition::Park { wake_at_ms: None }).await;
        assert_eq!(status, RunStatus::Parked);
    }

    /// Takes the answer that waits in the inbox.
    pub(crate) async fn take_answer(&mut self) {
        let inbox = self.store.inbox(&self.claimed.head.run).await.unwrap();
        let entry = inbox.first().unwrap();
        let record = SignalRecord::decode(&entry.record).unwrap();
        let interrupt = InterruptId::new(entry.key.strip_prefix('i').unwrap()).unwrap();
        self.event(Event::InterruptAnswered {
            interrupt,
            answer: Answer {
                comment: record.comment,
                from: record.from,
                ..Answer::new(record.answer, record.by, record.at_ms)
            },
            request: record.request,
            outcome: Outcome::Answered,
        });
        self.commit(Disposition::Continue).await;
    }

    pub(crate) async fn finish(&mut self, event: Event, end: End) {
        self.event(event);
        self.commit(Disposition::Finish { end }).await;
    }

    /// The task is the last one, and the run ends well.
    pub(crate) async fn complete(&mut self) {
        let (task, next) = (self.task(), Routing::To(END.to_owned()));
        self.event(Event::NodeCompleted { task, patches: Vec::new(), next, counted: true });
        self.finish(Event::RunCompleted, End::Completed).await;
    }
}

/// A lost worker, as its supervisor tells it.
pub(crate) async fn lose_worker(world: &World, evidence: &str) {
    let worker = WorkerId::new("w1").unwrap();
    world.store.lost(&worker, evidence, &[0]).await.unwrap();
}
