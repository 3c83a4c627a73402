//! The functional way to make graphs: entry points, tasks, chains of tasks, fan-out and merge.

use std::{future::Future, sync::Arc};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{
    AppendReducer, CompiledGraph, GraphFaults, NodeContext, NodeError, NodeOptions, State,
    StateGraph, StateSchema, Update, fingerprint::of_parts, update::Writes,
};

/// The key that an entry point and a task read.
const INPUT: &str = "input";
/// The key that they write.
const OUTPUT: &str = "output";

/// Why a functional graph cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FunctionalError {
    /// A name is empty.
    #[error("a name is empty")]
    EmptyName,
    /// There is nothing to run.
    #[error("{0} has no tasks")]
    NoTasks(String),
    /// Two tasks have one name.
    #[error("two tasks are called {0:?}")]
    DoubleName(String),
    /// The graph has faults.
    #[error(transparent)]
    Graph(#[from] GraphFaults),
}

/// Merges the states of parallel branches: the state before the fork, and theirs in order.
pub type MergeFunc = Arc<dyn Fn(&State, &[State]) -> Result<State, NodeError> + Send + Sync>;

/// A graph of one node called `name`: reads the key `input`, writes the key `output`.
///
/// A plain job is a graph with one node.
///
/// ```
/// let graph = holdpoint_graph::register_entrypoint("double", |_, input| async move {
///     Ok((input.as_i64().unwrap_or(0) * 2).into())
/// });
/// assert_eq!(graph.unwrap().id().as_str(), "double");
/// ```
///
/// # Errors
/// An empty name, or one that is no id.
pub fn register_entrypoint<F, Fut>(
    name: &str,
    function: F,
) -> Result<CompiledGraph, FunctionalError>
where
    F: Fn(NodeContext, Value) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Value, NodeError>> + Send + 'static,
{
    if name.is_empty() {
        return Err(FunctionalError::EmptyName);
    }
    let graph = StateGraph::new(name)
        .add_node(name, input_to_output(function))
        .set_entry_point(name)
        .set_finish_point(name)
        .compile()?;
    Ok(graph)
}

type Updating = crate::BoxFuture<'static, Result<Update, NodeError>>;
type NodeOf = Arc<dyn Fn(NodeContext, State) -> Updating + Send + Sync>;

fn input_to_output<F, Fut>(function: F) -> impl Fn(NodeContext, State) -> Updating + Send + Sync
where
    F: Fn(NodeContext, Value) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Value, NodeError>> + Send + 'static,
{
    let function = Arc::new(function);
    move |ctx, state| {
        let function = Arc::clone(&function);
        let input = state.get(INPUT).cloned().unwrap_or_default();
        Box::pin(async move { Ok(Update::new().set(OUTPUT, function(ctx, input).await?)) })
    }
}

/// A node function whose body is one memoised step, named by `name` and the hash of its input:
/// recorded in the journal, never repeated, and the state stays clean.
///
/// # Errors
/// An empty name.
pub fn register_task<F, Fut>(
    name: &str,
    function: F,
) -> Result<
    impl Fn(NodeContext, State) -> crate::BoxFuture<'static, Result<Update, NodeError>>
    + Send
    + Sync
    + use<F, Fut>,
    FunctionalError,
>
where
    F: Fn(NodeContext, Value) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<Value, NodeError>> + Send + 'static,
{
    if name.is_empty() {
        return Err(FunctionalError::EmptyName);
    }
    let (name, function) = (name.to_owned(), Arc::new(function));
    Ok(input_to_output(move |ctx: NodeContext, input: Value| {
        let function = Arc::clone(&function);
        let key = format!("{name} {}", of_parts(&[&input.to_string()]));
        async move {
            let inner = ctx.clone();
            ctx.step(&key, || function(inner, input)).await
        }
    }))
}

/// A task of [`task_graph`]: from a value to a value.
pub type TaskFunc = Arc<
    dyn Fn(NodeContext, Value) -> crate::BoxFuture<'static, Result<Value, NodeError>> + Send + Sync,
>;

/// A chain of tasks in the given order: each output is the next input.
///
/// # Errors
/// An empty list, an empty or double name, or a name that is no id.
pub fn task_graph(
    id: &str,
    tasks: Vec<(&str, TaskFunc)>,
) -> Result<CompiledGraph, FunctionalError> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in &tasks {
        if names.contains(name) {
            return Err(FunctionalError::DoubleName((*name).to_owned()));
        }
        names.push(name);
    }
    let (Some(first), Some(last)) = (names.first().copied(), names.last().copied()) else {
        return Err(FunctionalError::NoTasks(id.to_owned()));
    };
    let mut graph = StateGraph::new(id).set_entry_point(first).set_finish_point(last);
    for pair in names.windows(2) {
        if let [from, to] = pair {
            graph = graph.add_edge(*from, *to);
        }
    }
    for (name, task) in tasks {
        let is_first = name == first;
        let run = register_task(name, move |ctx, input| task(ctx, input))?;
        let run: NodeOf = Arc::new(run);
        graph = graph.add_node(name, move |ctx, state: State| {
            let input = if is_first { INPUT } else { OUTPUT };
            let input = state.get(input).cloned().unwrap_or_default();
            run(ctx, State::new().with(INPUT, input))
        });
    }
    Ok(graph.compile()?)
}

/// The later branch wins for each key that it changed or took away.
///
/// # Errors
/// Never.
pub fn merge_all(original: &State, results: &[State]) -> Result<State, NodeError> {
    let mut merged: Map<String, Value> = (**original).clone();
    for result in results {
        Changes::between(original, result).put(&mut merged);
    }
    Ok(merged.into())
}

/// A graph that runs branches side by side and merges their states: one node for each branch and
/// one for the join, so that each branch is committed on its own and not repeated.
///
/// # Errors
/// An empty list of branches, or an id that is none.
pub fn fan_out(
    id: &str,
    branches: Vec<crate::NodeFunc>,
    merge: MergeFunc,
) -> Result<CompiledGraph, FunctionalError> {
    if branches.is_empty() {
        return Err(FunctionalError::NoTasks(id.to_owned()));
    }
    let hidden = format!("{id}.branches");
    let schema = StateSchema::new().with(&hidden, AppendReducer);
    let mut graph = StateGraph::new(id)
        .with_schema(schema)
        .add_router("fork")
        .set_entry_point("fork")
        .set_finish_point("join");
    for (index, branch) in branches.into_iter().enumerate() {
        let (name, key) = (format!("branch-{index}"), hidden.clone());
        graph = graph.add_edge("fork", &name).add_edge(&name, "join").add_node(
            &name,
            move |ctx, state: State| {
                let (key, work) = (key.clone(), branch(ctx, state.clone()));
                async move {
                    let result = after(&state, work.await?)?;
                    Ok(Update::new().set(key, vec![Changes::between(&state, &result)]))
                }
            },
        );
    }
    let join = move |_: NodeContext, state: State| {
        let (merge, key) = (Arc::clone(&merge), hidden.clone());
        async move {
            let changes: Vec<Changes> = state.read(&key)?;
            let original: State = state.into_iter().filter(|(name, _)| *name != key).collect();
            let results: Vec<State> =
                changes.into_iter().map(|changes| changes.on(&original)).collect();
            merge(&original, &results).map(Update::whole)
        }
    };
    Ok(graph.add_node_with("join", NodeOptions::new(), join).compile()?)
}

/// A branch's whole state after its update; reducers belong to the merge.
fn after(state: &State, update: Update) -> Result<State, NodeError> {
    if let Some((code, why)) = update.fault {
        return Err(NodeError::permanent(why).with_code(code.as_str()));
    }
    if update.goto.is_some() {
        return Err(NodeError::permanent("a branch of a fan-out cannot goto"));
    }
    let mut result: Map<String, Value> = (**state).clone();
    match update.writes {
        Writes::Keys { set, unset } => {
            result.extend(set);
            result.retain(|key, _| !unset.contains(key));
        }
        Writes::Whole { state, is_complete: true } => result = state,
        Writes::Whole { state, is_complete: false } => result.extend(state),
    }
    Ok(result.into())
}

/// What a branch changed: kept in place of its whole state, so that many branches stay small.
#[derive(Serialize, Deserialize)]
struct Changes {
    set: Map<String, Value>,
    unset: Vec<String>,
}

impl Changes {
    fn between(old: &State, new: &State) -> Self {
        let set = new.iter().filter(|(key, value)| old.get(*key) != Some(value));
        let unset = old.keys().filter(|key| !new.contains_key(*key));
        Self {
            set: set.map(|(key, value)| (key.clone(), value.clone())).collect(),
            unset: unset.cloned().collect(),
        }
    }

    fn on(self, old: &State) -> State {
        let mut state: Map<String, Value> = (**old).clone();
        self.put(&mut state);
        state.into()
    }

    fn put(self, state: &mut Map<String, Value>) {
        state.extend(self.set);
        state.retain(|key, _| !self.unset.contains(key));
    }
}
