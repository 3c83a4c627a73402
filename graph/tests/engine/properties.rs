//! Properties over random graphs of forks and chains: the end never depends on timing, and a run
//! may be cut at any event.

use holdpoint_graph::{
    Budget, CompiledGraph, Engine, Event, MergeMapReducer, Next, NodeContext, NodeError, Progress,
    ReducerFunc, Resource, RunId, RunLimits, State, StateGraph, StateSchema, Update,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::driver::{Driver, lists};

/// A series-parallel graph.
#[derive(Debug, Clone)]
enum Shape {
    Node(u8),
    Series(Vec<Shape>),
    Fork(Vec<Shape>),
}

fn shapes() -> impl Strategy<Value = Shape> {
    let leaf = any::<u8>().prop_map(Shape::Node);
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 1..4).prop_map(Shape::Series),
            prop::collection::vec(inner, 2..4).prop_map(Shape::Fork),
        ]
    })
}

/// What a node writes, by its number: appends, merges, sums, equal and unequal replacements.
async fn write(ctx: NodeContext, state: State) -> Result<Update, NodeError> {
    let (_, kind) = ctx.node().rsplit_once('-').unwrap_or_default();
    let kind: u8 = kind.parse().unwrap_or_default();
    let update = Update::new().set("path", ctx.node());
    Ok(match kind % 8 {
        0 => update.set("items", json!([kind, ctx.node()])),
        1 => update.set("m", json!({ ctx.node(): kind })),
        2 => update.set("sum", kind),
        3 => update.set("same", 1),
        4 => update.set(format!("own {}", ctx.node()), kind),
        5 => update.set("seen", state.get("seen")),
        6 if kind > 230 => update.set("torn", kind),
        6 => update,
        _ => update.unset("same"),
    })
}

struct Drawn {
    graph: StateGraph,
    count: usize,
}

impl Drawn {
    fn node(&mut self, kind: u8) -> String {
        let id = format!("n{}-{kind}", self.count);
        self.count += 1;
        self.graph = self.graph.clone().add_node(&id, write);
        id
    }

    fn edge(&mut self, from: &str, to: &str) {
        self.graph = self.graph.clone().add_edge(from, to);
    }

    /// The first and the last node of a shape.
    fn shape(&mut self, shape: &Shape) -> (String, String) {
        match shape {
            Shape::Node(kind) => {
                let id = self.node(*kind);
                (id.clone(), id)
            }
            Shape::Series(parts) => {
                let ends: Vec<(String, String)> = parts.iter().map(|p| self.shape(p)).collect();
                for pair in ends.windows(2) {
                    self.edge(&pair[0].1, &pair[1].0);
                }
                (ends.first().unwrap().0.clone(), ends.last().unwrap().1.clone())
            }
            Shape::Fork(branches) => {
                let (fork, join) = (self.node(6), self.node(6));
                for branch in branches {
                    let (first, last) = self.shape(branch);
                    self.edge(&fork, &first);
                    self.edge(&last, &join);
                }
                (fork, join)
            }
        }
    }
}

fn graph(shape: &Shape) -> CompiledGraph {
    let sum = ReducerFunc::new("sum", |old, new| {
        (old.and_then(Value::as_i64).unwrap_or(0) + new.as_i64().unwrap_or(0)).into()
    });
    let schema: StateSchema = lists().with("m", MergeMapReducer).with("sum", sum);
    let mut drawn = Drawn { graph: StateGraph::new("random").with_schema(schema), count: 0 };
    let (first, last) = drawn.shape(shape);
    drawn.graph.set_entry_point(first).set_finish_point(last).compile().unwrap()
}

/// The state at the end, or why there is none.
fn end(run: &Driver) -> (Value, Option<String>) {
    let reason = run.progress.reason().map(|reason| reason.message.clone());
    (run.progress.state().clone().into_json(), reason)
}

fn input() -> Value {
    json!({ "items": ["before"], "sum": 5, "same": 0, "seen": 3, "torn": 0 })
}

/// Chooses by the numbers given, over and over.
fn by(order: &[usize]) -> impl FnMut(usize) -> usize + '_ {
    let mut order = order.iter().copied().cycle();
    move |count| order.next().unwrap_or(0) % count
}

/// Answers every question of a budget with the next raise; each comes when it is used up exactly.
fn raise_to_the_end(run: &mut Driver, order: &[usize], raises: &[u64]) {
    let mut raises = raises.iter().cycle();
    while let Next::Wait { .. } = run.run_by(by(order)) {
        let (used, budget) = (run.progress.used(Resource::Steps), run.progress.budget().steps);
        assert_eq!(Some(used), budget);
        run.answer(&run.asked(), json!({ "raise_by": raises.next().unwrap() }));
        assert!(run.progress.budget().steps > budget, "it goes on");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn any_order_of_completions_gives_the_same_end(
        shape in shapes(),
        order in prop::collection::vec(0_usize..100, 1..20),
    ) {
        let graph = graph(&shape);
        let mut first = Driver::start(&graph, input());
        first.run();
        let mut other = Driver::start(&graph, input());
        other.run_by(by(&order));
        let code = |run: &Driver| run.progress.reason().map(|reason| reason.code);
        prop_assert_eq!(code(&first), code(&other));
        if first.progress.reason().is_none() {
            prop_assert_eq!(end(&first), end(&other));
            prop_assert_eq!(first.progress.steps(), other.progress.steps());
        }
    }

    #[test]
    fn a_run_that_is_cut_after_any_event_comes_to_the_same_end(
        shape in shapes(),
        order in prop::collection::vec(0_usize..100, 1..20),
    ) {
        let graph = graph(&shape);
        let mut whole = Driver::start(&graph, input());
        whole.run_by(by(&order));
        for cut in 1..whole.events.len() {
            let events = whole.events[..cut].to_vec();
            let mut resumed = Driver::resumed(&graph, &events);
            resumed.run_by(by(&order));
            prop_assert_eq!(
                resumed.progress.reason().map(|reason| reason.code),
                whole.progress.reason().map(|reason| reason.code)
            );
            if whole.progress.reason().is_none() {
                prop_assert_eq!(end(&resumed), end(&whole));
            }
        }
    }

    /// Whoever takes the run up, and wherever, has used as many steps as its journal tells.
    #[test]
    fn a_budget_asks_at_its_number_and_changes_nothing_else(
        shape in shapes(),
        order in prop::collection::vec(0_usize..100, 1..20),
        steps in 1..6_u64,
        raises in prop::collection::vec(1..4_u64, 1..5),
        cut in any::<prop::sample::Index>(),
    ) {
        let graph = graph(&shape);
        let mut free = Driver::start(&graph, input());
        free.run_by(by(&order));
        let budget = Budget { steps: Some(steps), ..Budget::default() };
        let limits = RunLimits { max_steps: 1_000, budget };
        let mut run = Driver::start_with(&graph, input(), limits);
        raise_to_the_end(&mut run, &order, &raises);
        let cut = 1 + cut.index(run.events.len() - 1);
        let mut resumed = Driver::resumed(&graph, &run.events[..cut]);
        raise_to_the_end(&mut resumed, &order, &raises);
        let code = |run: &Driver| run.progress.reason().map(|reason| reason.code);
        for run in [run, resumed] {
            prop_assert_eq!(code(&run), code(&free));
            if free.progress.reason().is_none() {
                prop_assert_eq!(end(&run), end(&free));
                prop_assert_eq!(run.progress.used(Resource::Steps), free.progress.steps());
            }
        }
    }

    #[test]
    fn drawings_and_fingerprints_are_stable(shape in shapes()) {
        let (one, two) = (graph(&shape), graph(&shape));
        prop_assert_eq!(one.fingerprint(), two.fingerprint());
        prop_assert_eq!(one.to_mermaid(), two.to_mermaid());
        prop_assert_eq!(one.to_dot(), two.to_dot());
        prop_assert_eq!(one.to_json(), two.to_json());
    }

    #[test]
    fn garbage_in_a_journal_is_an_error_and_not_a_panic(
        shape in shapes(),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 1..12),
    ) {
        let mut whole = Driver::start(&graph(&shape), input());
        whole.run();
        let mut progress = Progress::new();
        for pick in picks {
            let event: &Event = pick.get(&whole.events);
            let before = progress.clone();
            if progress.apply(event).is_err() {
                progress = before;
            }
        }
    }
}

#[test]
fn the_first_event_is_the_same_for_the_same_run() {
    let graph = graph(&Shape::Node(0));
    let engine = Engine::new(graph, RunId::new("r").unwrap());
    let start = || engine.start(&State::new(), State::new().with("items", "x"), 10);
    assert_eq!(start(), start());
}
