//! A storm of answers: before, at the moment of and after the park, twice, to older questions and
//! to runs that have ended, from fifty senders at once, while workers are killed.
//!
//! Each question is decided once, and what was acknowledged is what the journals hold.

use std::{
    collections::BTreeSet,
    ops::Range,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use holdpoint::{
    Clock as _, Code, Event, InterruptId, Producer, ProducerError, QuestionFilter, Random, RunId,
    RunRequest, RunStatus, SignalOptions, Signalled, SystemClock,
};
use holdpoint_testkit::until_async;
use serde_json::json;
use tokio::{task::JoinSet, time::sleep};

use crate::{
    worker,
    world::{LONG, Worker, World},
};

const RUNS: usize = 1_000;
const SENDERS: usize = 50;
/// Senders that share a way to the store.
const SENDERS_PER_STORE: usize = 10;
/// The runs whose first answers come before any worker does.
const EARLY: Range<usize> = 0..250;
/// The runs whose first answers come while they are about to park.
const MEANWHILE: Range<usize> = 250..600;
/// The questions of a run.
const QUESTIONS: usize = 2;
/// How long a worker lives at least once it serves.
const LIFE: Duration = Duration::from_millis(500);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_on_sqlite_decides_each_question_once() {
    Box::pin(storm(&World::sqlite().await)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_storm_on_redis_decides_each_question_once() {
    Box::pin(storm(&World::redis().await)).await;
}

/// A run under fire.
struct Target {
    run: RunId,
    /// How many of its questions are known to be decided.
    decided: AtomicUsize,
    /// The questions that somebody saw open.
    seen: Mutex<BTreeSet<InterruptId>>,
}

/// What all senders share.
struct Fire {
    targets: Vec<Target>,
    numbers: AtomicU64,
    sent: AtomicU64,
    /// The numbers of the answers that were acknowledged.
    taken: Mutex<BTreeSet<u64>>,
}

async fn storm(world: &World) {
    let began = SystemClock.monotonic();
    let fire = Arc::new(Fire::new(enqueue(world).await));
    fire.upon(world, EARLY, 1).await;
    let is_over = Arc::new(AtomicBool::new(false));
    let (killing, parked) = tokio::join!(kill(world, &is_over), async {
        fire.upon(world, MEANWHILE, 1).await;
        let parked = until_async("all runs to park", LONG, async || {
            let parked = world.count(RunStatus::Parked).await;
            (parked == RUNS as u64).then_some(parked)
        })
        .await;
        fire.upon(world, 0..RUNS, QUESTIONS).await;
        until_async("all runs to complete", LONG, async || {
            (world.count(RunStatus::Completed).await == RUNS as u64).then_some(())
        })
        .await;
        is_over.store(true, Ordering::Relaxed);
        parked
    });
    assert_eq!(parked, RUNS as u64);
    assert!(killing >= 3, "{killing} kills are no storm");
    let (sent, taken) = fire.check(world).await;
    let took = SystemClock.monotonic().duration_since(began);
    println!("{sent} answers, {taken} taken, {killing} kills, {took:?}");
}

async fn enqueue(world: &World) -> Vec<RunId> {
    let requests: Vec<_> = (0..RUNS).map(|_| RunRequest::new("two").allow_unknown()).collect();
    let receipts = world.producer.enqueue_batch(&requests, false).await.unwrap();
    receipts.into_iter().map(|receipt| receipt.unwrap().run).collect()
}

/// Two workers, the older of which is killed as soon as both serve. Answers how often.
async fn kill(world: &World, is_over: &AtomicBool) -> usize {
    let mut workers = vec![world.worker(25), world.worker(25)];
    let mut kills = 0;
    while !is_over.load(Ordering::Relaxed) {
        until_async("both workers", LONG, async || {
            workers.iter().all(Worker::listens).then_some(())
        })
        .await;
        sleep(LIFE).await;
        world.kill(workers.remove(0)).await;
        workers.push(world.worker(25));
        kills += 1;
    }
    kills
}

impl Fire {
    fn new(runs: Vec<RunId>) -> Self {
        let target = |run| Target { run, decided: AtomicUsize::default(), seen: Mutex::default() };
        let targets = runs.into_iter().map(target).collect();
        let (numbers, sent) = (AtomicU64::new(1), AtomicU64::default());
        Self { targets, numbers, sent, taken: Mutex::default() }
    }

    /// All senders answer until so many questions of each of these runs are decided.
    async fn upon(self: &Arc<Self>, world: &World, part: Range<usize>, decided: usize) {
        let mut senders = JoinSet::new();
        let mut producer = None;
        for sender in 0..SENDERS {
            if sender % SENDERS_PER_STORE == 0 {
                let store = worker::open(&world.url()).await.unwrap();
                producer = Some(Producer::new(store).with_patience(LONG));
            }
            let (fire, part, producer) =
                (Arc::clone(self), part.clone(), producer.clone().unwrap());
            senders.spawn(async move { fire.send_upon(&producer, sender, part, decided).await });
        }
        while let Some(ended) = senders.join_next().await {
            ended.unwrap();
        }
    }

    async fn send_upon(
        &self,
        producer: &Producer,
        sender: usize,
        part: Range<usize>,
        decided: usize,
    ) {
        loop {
            let is_left = |target: &&Target| target.decided.load(Ordering::Relaxed) < decided;
            let left: Vec<&Target> = self.targets[part.clone()].iter().filter(is_left).collect();
            if left.is_empty() {
                return;
            }
            // Everybody at the same runs, and now and then at one that is done.
            let near = left.len().min(2 * SENDERS);
            let target = match chance(10) {
                0 => &self.targets[part.start + chance(part.len())],
                _ => left[chance(near)],
            };
            self.send(producer, sender, target, decided).await;
        }
    }

    /// Sends an answer, perhaps twice at once: the same, or another.
    async fn send(&self, producer: &Producer, sender: usize, target: &Target, most: usize) {
        let address = self.address(producer, target, most).await;
        let first = self.numbers.fetch_add(1, Ordering::Relaxed);
        let second = match chance(4) {
            0 => Some(first),
            1 => Some(self.numbers.fetch_add(1, Ordering::Relaxed)),
            _ => None,
        };
        let signal = |number: u64| {
            let answer = json!({ "approve": true, "n": number });
            let by = format!("sender-{sender}");
            address.clone().answer(answer).by(by).key(format!("answer-{number}"))
        };
        let first_signal = signal(first);
        let one = producer.signal(&first_signal);
        match second {
            None => self.told(target, first, one.await),
            Some(second) => {
                let second_signal = signal(second);
                let two = producer.signal(&second_signal);
                let (one, two) = tokio::join!(one, two);
                self.told(target, first, one);
                self.told(target, second, two);
            }
        }
    }

    /// To a gate by its name, open or not, to the one open question, to the one that is seen, or
    /// to one that was seen once.
    async fn address(&self, producer: &Producer, target: &Target, most: usize) -> SignalOptions {
        let to = SignalOptions::run(target.run.as_str());
        let gates = if most == 1 { ["one", "one"] } else { ["one", "two"] };
        match chance(6) {
            0 | 1 => to.gate(gates[chance(2)]),
            2 if most > 1 => to,
            3 if most > 1 => {
                let older = target.seen.lock().unwrap().iter().next().cloned();
                older.map_or(to.clone(), |older| to.interrupt(older.as_str()))
            }
            _ => {
                let page = producer
                    .store()
                    .questions(&QuestionFilter::of_run(&target.run), None, 9)
                    .await
                    .unwrap();
                let is_ours = |body: &[u8]| {
                    most > 1
                        || serde_json::from_slice::<holdpoint::Interrupt>(body).unwrap().gate
                            == Some("one".to_owned())
                };
                match page.rows.first().filter(|row| is_ours(&row.body)) {
                    Some(row) => {
                        target.seen.lock().unwrap().insert(row.interrupt.clone());
                        to.interrupt(row.interrupt.as_str())
                    }
                    None => to.gate(gates[0]),
                }
            }
        }
    }

    fn told(&self, target: &Target, number: u64, told: Result<Signalled, ProducerError>) {
        self.sent.fetch_add(1, Ordering::Relaxed);
        let refusals = [Code::Decided, Code::StaleInterrupt, Code::NoQuestion, Code::RunFinal];
        match told {
            Ok(_) => {
                if self.taken.lock().unwrap().insert(number) {
                    target.decided.fetch_add(1, Ordering::Relaxed);
                }
            }
            Err(error) => {
                assert!(refusals.contains(&error.code()), "{error:?}");
                if let ProducerError::Decided { decision, .. } = &error {
                    assert_ne!(decision.answer["n"], number, "refused for itself: {error:?}");
                }
            }
        }
    }

    /// Compares what was acknowledged with what the journals hold. Answers how many were sent and
    /// taken.
    async fn check(&self, world: &World) -> (u64, usize) {
        let mut applied = BTreeSet::new();
        for target in &self.targets {
            let (mut opened, mut answered, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
            let mut nodes = Vec::new();
            for event in world.events(&target.run).await {
                match event {
                    Event::InterruptOpened { interrupt } => opened.push(interrupt.interrupt),
                    Event::InterruptAnswered { interrupt, answer, .. } => {
                        answered.push(interrupt);
                        numbers.push(answer.value["n"].as_u64().unwrap());
                    }
                    Event::NodeCompleted { task, .. } => nodes.push(task.node),
                    _ => {}
                }
            }
            assert_eq!(opened.len(), QUESTIONS, "{}", target.run);
            assert_eq!(opened, answered, "{}", target.run);
            assert_eq!(nodes, ["a", "b", "z"], "{}", target.run);
            let state = world.view(&target.run).await.state;
            let kept = ["b", "z"].map(|node| state.get(node).and_then(|n| n.as_u64()).unwrap());
            assert_eq!(numbers, kept, "{}", target.run);
            applied.extend(numbers);
        }
        let taken = self.taken.lock().unwrap();
        let lost: Vec<_> = taken.difference(&applied).collect();
        assert!(lost.is_empty(), "acknowledged and not applied: {lost:?}");
        let more: Vec<_> = applied.difference(&taken).collect();
        assert!(more.is_empty(), "applied and not acknowledged: {more:?}");
        (self.sent.load(Ordering::Relaxed), taken.len())
    }
}

/// A number below `below`.
fn chance(below: usize) -> usize {
    ((Random.unit() * below as f64) as usize).min(below - 1)
}
