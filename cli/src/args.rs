//! The command line as clap sees it. Values that the library checks stay texts here, so that a
//! bad one gets the same code whether it comes by the command line, a batch or HTTP.

pub(crate) mod doctor;
pub(crate) mod enqueue;
pub(crate) mod gates;
pub(crate) mod graphs;
pub(crate) mod runs;
pub(crate) mod worker;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Runs graphs of steps durably, and parks the ones that need a person.
#[derive(Debug, Parser)]
#[command(
    name = "holdpoint",
    version,
    about = "Runs graphs of steps durably, and parks the ones that need a person",
    propagate_version = true,
    max_term_width = 100
)]
pub(crate) struct Cli {
    /// What holds for all commands.
    #[command(flatten)]
    pub(crate) global: Global,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// What holds for all commands.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Where the runs live: sqlite:PATH, redis://HOST, redis+unix:///SOCKET [env: HOLDPOINT_STORE]
    #[arg(long, global = true, env = "HOLDPOINT_STORE", hide_env = true, value_name = "URL")]
    pub(crate) store: Option<String>,
    /// The namespace; part of every key [env: HOLDPOINT_NAMESPACE]
    #[arg(long, global = true, env = "HOLDPOINT_NAMESPACE", hide_env = true, value_name = "NS")]
    pub(crate) namespace: Option<String>,
    /// One JSON document, or one per line for lists and streams
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// A TOML file with the same names; flags and environment go before it [env: HOLDPOINT_CONFIG]
    #[arg(long, global = true, env = "HOLDPOINT_CONFIG", hide_env = true, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// How much is said on stderr: error, warn, info, debug, trace
    #[arg(long, global = true, value_name = "LEVEL")]
    pub(crate) log: Option<String>,
    /// Use a Redis whose settings may lose what it acknowledged
    #[arg(long, global = true)]
    pub(crate) accept_data_loss: bool,
    /// Use a Redis on another host without a password
    #[arg(long, global = true)]
    pub(crate) insecure_store: bool,
    /// The instance that the namespace must be, as the doctor shows it [env: HOLDPOINT_INSTANCE]
    #[arg(long, global = true, env = "HOLDPOINT_INSTANCE", hide_env = true, value_name = "ID")]
    pub(crate) instance: Option<String>,
    /// Use the namespace though it is another instance, or has lost its sentinel
    #[arg(long, global = true)]
    pub(crate) join: bool,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run the graphs of this program on a store, in one process, and show how they go
    Dev(worker::Dev),
    /// Claim runs and run them until SIGTERM
    Worker(worker::Worker),
    /// Store a run, or a batch of them
    Enqueue(Box<enqueue::Enqueue>),
    /// Look at runs and act on them
    #[command(subcommand)]
    Runs(runs::Runs),
    /// Answer a question of a run
    Signal(runs::Signal),
    /// Answer a gate with yes, or all that fit
    Approve(Box<runs::Decision>),
    /// Answer a gate with no, or all that fit
    Reject(Box<runs::Decision>),
    /// List the open questions, watch them, go through them with single keys
    Gates(Box<Gates>),
    /// Show who decided what in a run, or check that no record was altered
    Audit(Audit),
    /// Look at sessions
    #[command(subcommand)]
    Sessions(Sessions),
    /// Look at graphs, check them, move runs between their versions
    #[command(subcommand)]
    Graphs(graphs::Graphs),
    /// List the workers, live and lost
    Workers,
    /// Look at queues, pause and resume them
    #[command(subcommand)]
    Queues(Queues),
    /// Count the runs
    Stats,
    /// Check the store, and mend it
    Doctor(doctor::Doctor),
}

/// Which questions.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct Gates {
    /// What to do with one, in place of listing them
    #[command(subcommand)]
    pub(crate) command: Option<gates::GatesCommand>,
    /// Which ones to list.
    #[command(flatten)]
    pub(crate) inbox: gates::Inbox,
}

/// Whose record of decisions.
#[derive(Debug, Args)]
pub(crate) struct Audit {
    /// The run
    #[arg(required_unless_present = "verify")]
    pub(crate) run: Option<String>,
    /// Check the journal of the run, or of all runs; exit 3 names the first altered record
    #[arg(long)]
    pub(crate) verify: bool,
}

/// What to do with sessions.
#[derive(Debug, Subcommand)]
pub(crate) enum Sessions {
    /// List them
    List {
        /// So many at most [default: 50]
        #[arg(long, value_name = "N", allow_hyphen_values = true)]
        limit: Option<String>,
        /// Go on after this cursor
        #[arg(long, value_name = "CURSOR")]
        after: Option<String>,
    },
    /// Show one
    Show {
        /// The session
        session: String,
    },
    /// Delete one with everything of it
    Delete {
        /// The session
        session: String,
        /// Cancel its active run first
        #[arg(long)]
        cancel: bool,
    },
}

/// What to do with queues.
#[derive(Debug, Subcommand)]
pub(crate) enum Queues {
    /// List them
    List,
    /// Hand out no more runs of a queue
    Pause {
        /// The queue
        queue: String,
    },
    /// Hand out runs of a queue again
    Resume {
        /// The queue
        queue: String,
    },
}
