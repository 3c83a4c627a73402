//! The whole command line over a program's own graphs.

use std::{ffi::OsString, fmt, future::Future, process::ExitCode, sync::Arc};

use clap::{
    CommandFactory, FromArgMatches,
    error::{ContextKind, ContextValue},
};
use holdpoint_executor::GraphSet;
use holdpoint_graph::{
    BoxFuture, CompiledGraph, FunctionalError, GraphFault, GraphFaults, StateGraph,
};
use holdpoint_worker::WorkerConfig;

use crate::{
    args::Cli,
    commands,
    context::Context,
    desk::Desk,
    failure::{Failure, Stop},
    out::Out,
    settings::Settings,
};

/// A program with graphs and the command line of `holdpoint`.
///
/// ```no_run
/// use holdpoint_cli::App;
/// use holdpoint_graph::{NodeContext, NodeError, State, StateGraph, Update};
///
/// async fn greet(_: NodeContext, _: State) -> Result<Update, NodeError> {
///     Ok(Update::new().set("greeting", "hello"))
/// }
///
/// fn main() -> std::process::ExitCode {
///     let graph = StateGraph::new("hello")
///         .add_node("greet", greet)
///         .set_entry_point("greet")
///         .set_finish_point("greet");
///     App::new().graph(graph).main()
/// }
/// ```
#[derive(Clone, Default)]
pub struct App {
    graphs: GraphSet,
    faults: Vec<GraphFaults>,
    default: Option<Action>,
    tuning: Tuning,
}

/// What a program does when it is called without a command.
type Action = Arc<dyn Fn(Desk) -> BoxFuture<'static, anyhow::Result<()>> + Send + Sync>;

/// What a program changes of its workers' settings.
#[derive(Clone, Default)]
pub(crate) struct Tuning(Option<Arc<Change>>);

type Change = dyn Fn(&mut WorkerConfig) + Send + Sync;

impl Tuning {
    /// Changes the settings.
    pub(crate) fn apply(&self, config: &mut WorkerConfig) {
        if let Some(change) = &self.0 {
            change(config);
        }
    }
}

impl fmt::Debug for Tuning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Tuning").field(&self.0.is_some()).finish()
    }
}

/// What [`App::graph`] takes: a graph, or the attempt to make one.
///
/// A graph with faults does not end the program at once: `graphs validate` lists all faults of all
/// graphs, and whatever runs them refuses.
pub trait IntoGraph {
    /// The graph, or everything that is wrong with it.
    ///
    /// # Errors
    /// The graph's faults.
    fn into_graph(self) -> Result<CompiledGraph, GraphFaults>;
}

impl IntoGraph for CompiledGraph {
    fn into_graph(self) -> Result<CompiledGraph, GraphFaults> {
        Ok(self)
    }
}

impl IntoGraph for StateGraph {
    fn into_graph(self) -> Result<CompiledGraph, GraphFaults> {
        self.compile()
    }
}

impl IntoGraph for Result<CompiledGraph, GraphFaults> {
    fn into_graph(self) -> Result<CompiledGraph, GraphFaults> {
        self
    }
}

impl IntoGraph for Result<CompiledGraph, FunctionalError> {
    fn into_graph(self) -> Result<CompiledGraph, GraphFaults> {
        self.map_err(|error| match error {
            FunctionalError::Graph(faults) => faults,
            FunctionalError::EmptyName
            | FunctionalError::NoTasks(_)
            | FunctionalError::DoubleName(_) => GraphFaults {
                graph: String::new(),
                faults: vec![GraphFault {
                    code: "functional",
                    node: String::new(),
                    message: error.to_string(),
                    fix: "name each task once, and give at least one".to_owned(),
                }],
            },
        })
    }
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("App")
            .field("graphs", &self.graphs)
            .field("faults", &self.faults)
            .field("has_default", &self.default.is_some())
            .field("tuning", &self.tuning)
            .finish()
    }
}

impl App {
    /// A program without graphs.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a graph. Of two structures under one id the later is the newer version, and runs that
    /// are pinned to the older one are served too.
    #[must_use]
    pub fn graph(mut self, graph: impl IntoGraph) -> Self {
        match graph.into_graph() {
            Ok(graph) => self.graphs.add(graph),
            Err(faults) => self.faults.push(faults),
        }
        self
    }

    /// What the program does when it is called without a command. The command line stays as it is.
    #[must_use]
    pub fn with_default<F, Fut>(mut self, action: F) -> Self
    where
        F: Fn(Desk) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = anyhow::Result<()>> + Send + 'static,
    {
        self.default = Some(Arc::new(move |desk| Box::pin(action(desk))));
        self
    }

    /// Changes the settings of the program's workers, beyond what the command line offers. It gets
    /// the defaults for the lease in force; the other options of the command line go before it.
    #[must_use]
    pub fn tune_worker<F>(mut self, change: F) -> Self
    where
        F: Fn(&mut WorkerConfig) + Send + Sync + 'static,
    {
        self.tuning = Tuning(Some(Arc::new(change)));
        self
    }

    /// Runs the command that the process was started with.
    #[must_use = "it is the exit code of the process"]
    pub fn main(self) -> ExitCode {
        self.run(std::env::args_os())
    }

    /// Runs the command in `args`, of which the first is the program's name.
    #[must_use = "it is the exit code of the process"]
    pub fn run<A: Into<OsString>>(self, args: impl IntoIterator<Item = A>) -> ExitCode {
        let args: Vec<OsString> = args.into_iter().map(Into::into).collect();
        let is_json = args.iter().take_while(|arg| *arg != "--").any(|arg| arg == "--json");
        let mut out = Out::new(is_json);
        let ended = self.started(&args, &mut out).and_then(|()| out.flush());
        match ended {
            Ok(()) | Err(Stop::ClosedPipe) => ExitCode::SUCCESS,
            Err(Stop::Exit(code)) => match out.flush() {
                Err(Stop::Failed(failure)) => told(&out, &failure),
                Ok(()) | Err(Stop::ClosedPipe | Stop::Exit(_)) => ExitCode::from(code),
            },
            Err(Stop::Failed(failure)) => told(&out, &failure),
        }
    }

    fn started(self, args: &[OsString], out: &mut Out) -> Result<(), Stop> {
        let program = program(args);
        let command = Cli::command().bin_name(program.clone());
        let cli =
            command.try_get_matches_from(args).and_then(|matches| Cli::from_arg_matches(&matches));
        let cli = cli.map_err(|fault| parsed_badly(&fault, out))?;
        let settings = Settings::new(&cli.global)?;
        *out = Out::new(settings.is_json);
        let context = Context {
            out: *out,
            settings,
            graphs: self.graphs,
            faults: self.faults,
            tuning: self.tuning,
            program: called(args, &program),
            args: args.get(1..).unwrap_or_default().to_vec(),
        };
        match (cli.command, self.default) {
            (Some(command), _) => commands::run(command, context),
            (None, Some(action)) => commands::default(context, |desk| action(desk)),
            (None, None) => {
                out.say(Cli::command().bin_name(program).render_help());
                Err(Stop::Exit(2))
            }
        }
    }
}

/// How people call the program again: an example by cargo, all else by its name.
fn called(args: &[OsString], program: &str) -> String {
    let folder = args.first().map(std::path::Path::new).and_then(std::path::Path::parent);
    match folder.and_then(std::path::Path::file_name) {
        Some(folder) if folder == "examples" => format!("cargo run -q --example {program} --"),
        Some(_) | None => program.to_owned(),
    }
}

/// The program's name.
fn program(args: &[OsString]) -> String {
    let path = args.first().map(std::path::Path::new);
    let name = path.and_then(|path| path.file_name()).map(|name| name.to_string_lossy());
    name.filter(|name| !name.is_empty()).map_or_else(|| "holdpoint".to_owned(), |n| n.into_owned())
}

/// Help and version are answers; all else is a wrong use.
fn parsed_badly(fault: &clap::Error, out: &Out) -> Stop {
    let text = fault.render();
    if !fault.use_stderr() {
        let shown = if out.paint.is_plain() { text.to_string() } else { text.ansi().to_string() };
        return out.line(shown.trim_end()).err().unwrap_or(Stop::Exit(0));
    }
    let text = text.to_string();
    let mut parts = text.strip_prefix("error: ").unwrap_or(&text).trim_end().splitn(2, "\n\n");
    let message: Vec<&str> = parts.next().unwrap_or_default().split_whitespace().collect();
    let message = holdpoint_graph::printable(&message.join(" "), 500);
    let failure = Failure::usage(&blamed(fault), message);
    match parts.next() {
        Some(rest) => failure.with_fix(rest.trim().replace('\n', "\n  ")),
        None => failure,
    }
    .into()
}

/// The name of the option that a wrong use is about; empty when it is none alone.
fn blamed(fault: &clap::Error) -> String {
    let word = match fault.get(ContextKind::InvalidArg) {
        Some(ContextValue::String(text)) => text.as_str(),
        Some(ContextValue::Strings(texts)) => texts.first().map_or("", String::as_str),
        Some(_) | None => "",
    };
    let name = word.trim_start_matches(['-', '<', '[']);
    let is_part = |c: &char| c.is_ascii_alphanumeric() || *c == '-';
    let name: String = name.chars().take_while(is_part).take(40).collect();
    name.to_ascii_lowercase().replace('-', "_")
}

fn told(out: &Out, failure: &Failure) -> ExitCode {
    out.fail(failure);
    ExitCode::from(failure.exit)
}
