//! The rows of the library: values that go through the producer, the graph builder, a runner or a
//! worker, on both stores.

use std::sync::Arc;

use holdpoint::{
    Clock, CompiledGraph, GraphFaults, Producer, ProducerError, Refusal, RunId, RunRequest, Runner,
    SessionId, State, SystemClock,
};

use crate::{
    inputs::{Input, Node, make},
    place::Place,
    row::{Face, Row, Store},
    verdict::{Walked, check_says, check_text},
};

/// What the library said: a code, the field, the words. No code: it took the input.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub(crate) code: String,
    pub(crate) field: String,
    pub(crate) text: String,
}

/// A producer over a place with runs in all states.
pub(crate) struct Bench {
    pub(crate) place: Place,
    pub(crate) producer: Producer,
}

/// Walks the rows on both stores.
pub(crate) fn walk(rows: &[Row]) -> Walked {
    let rows: Vec<&Row> =
        rows.iter().filter(|r| r.face == Face::Library && r.is_walked()).collect();
    std::thread::scope(|scope| {
        let walks = [Place::sqlite("sqlite"), Place::redis("redis")].map(|place| {
            let rows = &rows;
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_multi_thread();
                let runtime = { runtime }.worker_threads(2).enable_all().build().unwrap();
                runtime.block_on(walk_on(place, rows))
            })
        });
        walks.into_iter().map(|walk| walk.join().unwrap()).fold(Walked::default(), Walked::and)
    })
}

async fn walk_on(mut place: Place, rows: &[&Row]) -> Walked {
    place.prepare();
    let producer = Producer::new(place.store_in("default").await);
    let bench = Bench { place, producer };
    let mut walked = Walked::default();
    let is_first = bench.place.name == "sqlite";
    for row in rows.iter().filter(|row| is_first || row.store != Store::Unopened) {
        let input = make(&row.input).unwrap_or_else(|| panic!("no input {:?}", row.input));
        let (before, since) = (bench.place.dump(), SystemClock.monotonic());
        let answer = Box::pin(bench.give(input)).await;
        let took = SystemClock.monotonic() - since;
        let verdict = match (before == bench.place.dump(), row.store) {
            (true, Store::Changed) => Err("nothing was stored".to_owned()),
            (false, Store::Unopened | Store::Unchanged) => Err("the store changed".to_owned()),
            (true, Store::Unopened | Store::Unchanged) | (false, Store::Changed) => Ok(()),
        };
        let verdict = judge(row, &answer).and(verdict);
        let verdict = verdict.map_err(|why| format!("{why}\n    {answer:?}"));
        walked.add(&format!("{} on {}", row.name(), bench.place.name), verdict, took);
    }
    let next = bench.producer.enqueue(&RunRequest::new("lin")).await;
    assert!(next.unwrap().created, "the next good one works");
    walked
}

fn judge(row: &Row, answer: &Answer) -> Result<(), String> {
    if answer.code != row.code || answer.field != row.field {
        return Err(format!("it said {} of {:?}", answer.code, answer.field));
    }
    // What a node said is data and kept as it is; a graph tells all its faults, one to a line.
    if !answer.code.starts_with("failed(") {
        answer.text.lines().try_for_each(check_text)?;
    }
    check_says(&answer.text, &row.says)
}

impl Bench {
    async fn give(&self, input: Input) -> Answer {
        match input {
            Input::Request(request) => answered(self.producer.enqueue(&request).await),
            Input::Batch(requests) => {
                let stored = self.producer.enqueue_batch(&requests, false).await;
                stored.map_or_else(
                    |error| Answer { text: error.to_string(), ..refused(&error.error) },
                    |_| Answer::default(),
                )
            }
            Input::Signal(options) => answered(self.producer.signal(&options).await),
            Input::Graph(graph) => compiled(graph.compile()),
            Input::Node(node) => Box::pin(self.run(*node)).await,
            Input::Worker(config) => config.check().map_or_else(refusal, |()| Answer::default()),
            Input::Made(made) => made.map_or_else(refusal, |()| Answer::default()),
            Input::Call(call) => call(self).await,
        }
    }

    async fn run(&self, node: Node) -> Answer {
        let store = Arc::clone(self.producer.store());
        let mut runner = Runner::new(node.graph.compile().unwrap(), store);
        if let Some(max_steps) = node.max_steps {
            runner = runner.with_max_steps(max_steps);
        }
        let session = SessionId::new(format!("s{}", SystemClock.wall_us())).unwrap();
        let ended = runner.run(session, State::new()).await.unwrap();
        assert_eq!(ended.state.into_json(), node.kept, "the checkpoint before it stands");
        self.ended(&ended.run_id).await
    }

    /// How a run ended.
    pub(crate) async fn ended(&self, run: &RunId) -> Answer {
        let view = self.producer.get(run).await.unwrap();
        let Some(reason) = view.reason else {
            return Answer { code: view.status.as_str().to_owned(), ..Answer::default() };
        };
        Answer {
            code: format!("failed({})", reason.code.as_str()),
            field: reason.node.unwrap_or_default(),
            text: reason.message.unwrap_or_default(),
        }
    }
}

/// The answer of a call.
pub(crate) fn answered<T>(result: Result<T, ProducerError>) -> Answer {
    result.map_or_else(|error| refused(&error), |_| Answer::default())
}

pub(crate) fn refused(error: &ProducerError) -> Answer {
    Answer {
        code: error.code().to_string(),
        field: error.field().to_owned(),
        text: error.to_string(),
    }
}

fn refusal(refusal: Refusal) -> Answer {
    refused(&refusal.into())
}

fn compiled(result: Result<CompiledGraph, GraphFaults>) -> Answer {
    result.map_or_else(
        |faults| Answer {
            code: faults.code().to_string(),
            field: faults.graph.clone(),
            text: faults.to_string(),
        },
        |_| Answer::default(),
    )
}
