//! What every command has: where to write, what was set, which graphs there are.

use std::{ffi::OsString, future::Future, time::Duration};

use holdpoint_executor::GraphSet;
use holdpoint_graph::{Code, GraphFaults, Refusal, RunId, limits};
use holdpoint_producer::{Producer, parse_duration};

use crate::{
    app::Tuning,
    failure::{Failure, Stop},
    out::Out,
    place::{self, Access},
    settings::{STORE_DEFAULT, Settings},
};

/// What every command has.
#[derive(Debug)]
pub(crate) struct Context {
    /// Where to write.
    pub(crate) out: Out,
    /// What was set.
    pub(crate) settings: Settings,
    /// The program's graphs.
    pub(crate) graphs: GraphSet,
    /// What is wrong with the others.
    pub(crate) faults: Vec<GraphFaults>,
    /// What the program changes of its workers' settings.
    pub(crate) tuning: Tuning,
    /// The program's name as people call it.
    pub(crate) program: String,
    /// What the program was called with, without its name.
    pub(crate) args: Vec<OsString>,
}

/// Knows the commands that people type on the same store.
#[derive(Debug, Clone)]
pub(crate) struct Asker {
    prefix: String,
}

impl Asker {
    /// The command for `rest`.
    pub(crate) fn command(&self, rest: &str) -> String {
        format!("{} {rest}", self.prefix)
    }
}

impl Context {
    /// Whether the program has graphs of its own.
    pub(crate) fn has_graphs(&self) -> bool {
        self.graphs.iter().next().is_some()
    }

    /// A producer over the store.
    pub(crate) async fn producer(&self, access: Access) -> Result<Producer, Stop> {
        let store = place::open(&self.settings, access).await?;
        Ok(Producer::new(store))
    }

    /// Fails when a graph of the program has faults: what it would do is not what was written.
    pub(crate) fn insist_on_good_graphs(&self) -> Result<(), Stop> {
        let Some(faults) = self.faults.first() else { return Ok(()) };
        let text = faults.to_string();
        let first = text.lines().next().unwrap_or_default();
        Err(Failure::of(faults.code(), first)
            .with_fix(format!("{} graphs validate shows all of them", self.program))
            .into())
    }

    /// The command that people type for `rest` on the same store.
    pub(crate) fn command(&self, rest: &str) -> String {
        self.asker().command(rest)
    }

    /// What knows these commands elsewhere.
    pub(crate) fn asker(&self) -> Asker {
        let mut prefix = self.program.clone();
        let is_said = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        if self.settings.store != STORE_DEFAULT && !is_said("HOLDPOINT_STORE") {
            let store = quoted(&place::without_secrets(&self.settings.store));
            prefix.push_str(&format!(" --store {store}"));
        }
        if self.settings.namespace.as_str() != "default" && !is_said("HOLDPOINT_NAMESPACE") {
            prefix.push_str(&format!(" --namespace {}", self.settings.namespace));
        }
        Asker { prefix }
    }
}

/// Runs a one-shot command.
pub(crate) fn block_on<F: Future<Output = Result<(), Stop>>>(work: F) -> Result<(), Stop> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    ended(runtime, work)
}

/// Runs a command that runs graphs.
pub(crate) fn block_on_threads<F: Future<Output = Result<(), Stop>>>(work: F) -> Result<(), Stop> {
    // A node that spins takes a thread with it; a few more than cores keep the others going.
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut builder = tokio::runtime::Builder::new_multi_thread();
    ended(builder.worker_threads(cores.max(4)).enable_all().build(), work)
}

fn ended<F: Future<Output = Result<(), Stop>>>(
    runtime: std::io::Result<tokio::runtime::Runtime>,
    work: F,
) -> Result<(), Stop> {
    let runtime = runtime.map_err(|fault| {
        Failure::new("E_RUNTIME", 1, format!("the system gives no threads: {fault}"))
    })?;
    let ended = runtime.block_on(work);
    // A node that never returns must not keep the process.
    runtime.shutdown_timeout(Duration::from_millis(200));
    ended
}

/// Reads a run's id.
pub(crate) fn run_id(text: &str) -> Result<RunId, Stop> {
    Ok(RunId::new(text)?)
}

/// Reads an option that is a duration.
pub(crate) fn duration(field: &str, text: Option<&String>) -> Result<Option<Duration>, Stop> {
    Ok(text.map(|text| parse_duration(field, text)).transpose()?)
}

/// Reads an option that is a whole number.
pub(crate) fn number<T: std::str::FromStr>(
    field: &str,
    text: Option<&String>,
) -> Result<Option<T>, Stop> {
    let read = |text: &String| {
        text.parse::<T>().map_err(|_| {
            let shown = holdpoint_graph::shown(text, 40);
            Refusal::new(Code::Range, field, format!("is {shown}, a whole number was expected"))
        })
    };
    Ok(text.map(read).transpose()?)
}

/// Reads the size of a page: 1 to 200, 50 when none is given.
pub(crate) fn page_size(text: Option<&String>) -> Result<usize, Stop> {
    let (size, max) = (number::<usize>("limit", text)?.unwrap_or(50), limits::PAGE_MAX);
    if (1..=max).contains(&size) {
        return Ok(size);
    }
    Err(Refusal::new(Code::Range, "limit", format!("is {size}, it must be 1 to {max}")).into())
}

/// Quotes a word for the shell when it needs to be.
pub(crate) fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "._~@-:/+=,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}
