//! The options of `enqueue`.

use clap::{Args, ValueEnum};

/// A run to store, or a file of them.
#[derive(Debug, Args)]
pub(crate) struct Enqueue {
    /// The graph
    #[arg(required_unless_present = "batch", conflicts_with = "batch")]
    pub(crate) graph: Option<String>,
    /// The input: JSON, @FILE, or - for stdin
    #[arg(long, value_name = "JSON", allow_hyphen_values = true, conflicts_with = "batch")]
    pub(crate) input: Option<String>,
    /// The session, of which one run at a time is active
    #[arg(long, value_name = "S", conflicts_with = "batch")]
    pub(crate) session: Option<String>,
    /// The run's id
    #[arg(long, value_name = "ID", conflicts_with = "batch")]
    pub(crate) run: Option<String>,
    /// The idempotency key: enqueued again with it, the first run is named
    #[arg(long, conflicts_with = "batch")]
    pub(crate) key: Option<String>,
    /// The queue
    #[arg(long, value_name = "Q", conflicts_with = "batch")]
    pub(crate) queue: Option<String>,
    /// 0 to 9, higher first [default: 4]
    #[arg(long, value_name = "N", allow_hyphen_values = true, conflicts_with = "batch")]
    pub(crate) priority: Option<String>,
    /// Start so long from now
    #[arg(
        long,
        value_name = "D",
        allow_hyphen_values = true,
        conflicts_with_all = ["at", "batch"]
    )]
    pub(crate) delay: Option<String>,
    /// Start at this time
    #[arg(long, value_name = "T", allow_hyphen_values = true, conflicts_with = "batch")]
    pub(crate) at: Option<String>,
    /// Fail as expired when nobody took it so long from now
    #[arg(long, value_name = "D", allow_hyphen_values = true, conflicts_with = "batch")]
    pub(crate) expires_in: Option<String>,
    /// Fail as expired when it has not ended so long from now
    #[arg(long, value_name = "D", allow_hyphen_values = true, conflicts_with = "batch")]
    pub(crate) deadline: Option<String>,
    /// Its plan is stale after so long without a move [default: 24h]
    #[arg(long, value_name = "D", allow_hyphen_values = true, conflicts_with = "batch")]
    pub(crate) stale_after: Option<String>,
    /// What happens when it is stale [default: ask]
    #[arg(long, value_enum, conflicts_with = "batch")]
    pub(crate) on_stale: Option<OnStale>,
    /// What happens while the session has an active run [default: enqueue]
    #[arg(long, value_enum, conflicts_with = "batch")]
    pub(crate) if_busy: Option<IfBusy>,
    /// A tag; may be given more than once
    #[arg(long, value_name = "K=V", conflicts_with = "batch")]
    pub(crate) tag: Vec<String>,
    /// The most steps of its life [default: 1000]
    #[arg(long, value_name = "N", allow_hyphen_values = true, conflicts_with = "batch")]
    pub(crate) max_steps: Option<String>,
    /// Ask a person whether it goes on after so many steps
    #[arg(long, value_name = "N", allow_hyphen_values = true, conflicts_with = "batch")]
    pub(crate) budget_steps: Option<String>,
    /// Ask a person whether it goes on after so long in the hands of workers
    #[arg(long, value_name = "D", allow_hyphen_values = true, conflicts_with = "batch")]
    pub(crate) budget_time: Option<String>,
    /// Store it although no worker ever offered the graph
    #[arg(long)]
    pub(crate) allow_unknown: bool,
    /// Wait until the run has ended or is parked, then show it
    #[arg(long, conflicts_with = "batch")]
    pub(crate) wait: bool,
    /// Wait no longer than this
    #[arg(long, value_name = "D", allow_hyphen_values = true, requires = "wait")]
    pub(crate) timeout: Option<String>,
    /// A file with one request per line, or - for stdin
    #[arg(long, value_name = "FILE.jsonl")]
    pub(crate) batch: Option<String>,
    /// Take the good lines of a batch and report the bad ones
    #[arg(long, requires = "batch")]
    pub(crate) partial: bool,
}

/// What happens to a stale run.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum OnStale {
    /// It goes on
    Resume,
    /// A person is asked
    Ask,
    /// It is cancelled
    Cancel,
}

/// What happens while the session has an active run.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum IfBusy {
    /// The new run waits its turn
    Enqueue,
    /// The new run is refused
    Reject,
    /// The active run is cancelled, its progress kept
    Interrupt,
    /// The active run is cancelled and undone for the session
    Rollback,
}
