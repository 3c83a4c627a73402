//! The runs that are enqueued: of all shapes, some under a key, some more than once.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use anyhow::Result;
use holdpoint_graph::RunId;
use holdpoint_producer::RunRequest;
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::{
    Desk,
    calls::{Answer, Came, Question},
    cancels,
};
use crate::{chance::Chance, graphs::SLOW_QUEUE};

/// Calls under way at once: a producer that waited for each would send nothing while the store
/// is away, and none of its calls would have an unknown outcome.
const CALLS_MAX: usize = 16;
/// How many tries a request with an unknown outcome gets.
const TRIES_MAX: usize = 4;
/// The sessions that some runs share.
const SESSIONS: u64 = 12;

/// The number of a producer's run that is to end its workers.
const POISON_AT: u64 = 20;
/// With this variable there is one.
pub(crate) const ENV_POISON: &str = "HOLDPOINT_TORTURE_POISON";

/// One of the load's runs.
struct Plan {
    run: String,
    graph: &'static str,
    request: RunRequest,
    has_key: bool,
    chance: Chance,
}

/// Enqueues until it is dropped.
pub(super) async fn produce(desk: Desk) -> Result<()> {
    let calls = Arc::new(Semaphore::new(CALLS_MAX));
    let mut chance = Chance::new(desk.seed, &desk.name);
    for number in 0_u64.. {
        let permit = Arc::clone(&calls).acquire_owned().await?;
        let plan = plan(&desk.name, number, Chance::new(chance.next(), "run"));
        let desk = desk.clone();
        let pause = chance.below(2 * 1_000_000 / desk.rate.max(1));
        tokio::spawn(async move {
            bring(&desk, plan).await;
            drop(permit);
        });
        tokio::time::sleep(Duration::from_micros(pause)).await;
    }
    Ok(())
}

/// What run `number` is: the same for the same seed.
fn plan(name: &str, number: u64, mut chance: Chance) -> Plan {
    let run = format!("{name}-{number:05}");
    let graph = match chance.below(1_000) {
        _ if is_poison(number) => "poison",
        0..360 => "line",
        360..500 => "fork",
        500..660 => "gate",
        660..740 => "ask",
        740..860 => "pay",
        860..872 => "slow",
        872..940 => "nap",
        _ => "long",
    };
    let input = input(graph, &mut chance);
    let mut request = RunRequest::new(graph).input(input).run(&run).request(format!("{run}-q"));
    request = request.allow_unknown();
    if graph == "slow" {
        request = request.queue(SLOW_QUEUE);
    }
    if graph == "line" && chance.percent(15) {
        request = request.session(format!("s{}", chance.below(SESSIONS)));
    }
    if graph == "line" && chance.percent(10) {
        request = request.delay(Duration::from_millis(chance.between(100, 1_500)));
    }
    let has_key = chance.percent(20);
    if has_key {
        request = request.key(format!("{run}-k"));
    }
    Plan { run, graph, request, has_key, chance }
}

/// Whether this run is one that ends its workers: none, unless the torture is about them.
fn is_poison(number: u64) -> bool {
    number == POISON_AT && std::env::var_os(ENV_POISON).is_some()
}

fn input(graph: &str, chance: &mut Chance) -> Value {
    let mut input = BTreeMap::from([("ms", chance.between(1, 15))]);
    if graph == "nap" {
        // Both sides of what a worker waits for in place, which is 2 s.
        let nap_ms = if chance.percent(50) { 300..=900 } else { 2_050..=2_600 };
        input.insert("nap_ms", chance.between(*nap_ms.start(), *nap_ms.end()));
    }
    json!(input)
}

/// Enqueues a run, repeats what is unknown, and does what goes with its shape.
async fn bring(desk: &Desk, mut plan: Plan) {
    let mut came = desk.enqueue(&plan.run, &plan.request).await;
    for _ in 1..TRIES_MAX {
        if came != Came::Unknown || plan.chance.percent(25) {
            break;
        }
        came = desk.enqueue(&plan.run, &plan.request).await;
    }
    if plan.has_key && came == Came::Ok && plan.chance.percent(50) {
        // The same work under the same key, by somebody who knows nothing of the first call.
        let again = plan.request.clone().request(format!("{}-r", plan.run));
        desk.enqueue(&plan.run, &again).await;
    }
    if came != Came::Ok {
        return;
    }
    if plan.graph == "gate" && plan.chance.percent(35) {
        answer_early(desk, &mut plan).await;
    }
    if plan.graph == "long"
        && let Ok(run) = RunId::new(&plan.run)
    {
        cancels::later(desk, &run, &mut plan.chance).await;
    }
}

/// Answers the gate before it opens, or as it does; sometimes twice.
async fn answer_early(desk: &Desk, plan: &mut Plan) {
    tokio::time::sleep(Duration::from_millis(plan.chance.below(25))).await;
    for number in 0..=plan.chance.below(2) {
        let answer = Answer {
            id: format!("{}-early{number}", plan.run),
            run: plan.run.clone(),
            question: Question::Gate("ok"),
            value: json!({ "approve": true }),
            args_hash: None,
            is_foreign: false,
        };
        desk.signal(&answer).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_brings_the_same_runs_of_every_shape() {
        let graphs = |seed| {
            let mut chance = Chance::new(seed, "load");
            let plans = (0..400).map(|n| plan("p", n, Chance::new(chance.next(), "run")));
            plans.map(|plan| plan.graph).collect::<Vec<_>>()
        };
        assert_eq!(graphs(1), graphs(1));
        assert_ne!(graphs(1), graphs(2));
        for graph in ["line", "fork", "gate", "ask", "pay", "slow", "nap", "long"] {
            assert!(graphs(1).contains(&graph), "{graph}");
        }
    }
}
