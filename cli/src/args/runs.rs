//! The options of `runs`, `signal`, `approve` and `reject`.

use clap::{ArgGroup, Args, Subcommand, ValueEnum};

use crate::args::gates::Which;

/// What to do with runs.
#[derive(Debug, Subcommand)]
pub(crate) enum Runs {
    /// List runs, newest first
    List(List),
    /// Show one run
    Show {
        /// The run
        run: String,
    },
    /// Wait for a run, then show it
    Wait(Wait),
    /// Show the events of a run
    Events(Events),
    /// Show the checkpoints of a run
    History {
        /// The run
        run: String,
    },
    /// Show the state of a run
    State {
        /// The run
        run: String,
        /// After this event instead of the newest
        #[arg(long, value_name = "SEQ")]
        at: Option<u64>,
    },
    /// Cancel runs
    Cancel(Cancel),
    /// Let failed runs go on at their last checkpoint
    Redrive(Redrive),
    /// Begin a new run at a checkpoint, with another state
    Fork(Fork),
    /// Begin a new run at a checkpoint, as it was
    Replay(Replay),
    /// Change the state of a parked run
    Edit(Edit),
    /// Make a scheduled run due
    StartNow {
        /// The run
        run: String,
    },
    /// Say why a run does not move
    Why {
        /// The run
        run: String,
    },
}

/// Which runs.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Filter {
    /// In this state; may be given more than once
    #[arg(long, value_name = "S")]
    pub(crate) status: Vec<String>,
    /// Failed for this reason
    #[arg(long, value_name = "CODE")]
    pub(crate) reason: Option<String>,
    /// Of this graph
    #[arg(long, value_name = "G")]
    pub(crate) graph: Option<String>,
    /// Of this session
    #[arg(long, value_name = "S")]
    pub(crate) session: Option<String>,
    /// Of this queue
    #[arg(long, value_name = "Q")]
    pub(crate) queue: Option<String>,
    /// With this tag; may be given more than once
    #[arg(long, value_name = "K=V")]
    pub(crate) tag: Vec<String>,
}

/// A page of runs.
#[derive(Debug, Args)]
pub(crate) struct List {
    /// Which.
    #[command(flatten)]
    pub(crate) filter: Filter,
    /// So many at most [default: 50]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) limit: Option<String>,
    /// Go on after this cursor
    #[arg(long, value_name = "CURSOR")]
    pub(crate) after: Option<String>,
}

/// How long to wait.
#[derive(Debug, Args)]
pub(crate) struct Wait {
    /// The run
    pub(crate) run: String,
    /// For this [default: terminal]
    #[arg(long, value_enum)]
    pub(crate) until: Option<Until>,
    /// No longer than this
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    pub(crate) timeout: Option<String>,
}

/// What a caller waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Until {
    /// The run has ended
    Terminal,
    /// The run is parked or has ended
    Parked,
}

/// Which events.
#[derive(Debug, Args)]
pub(crate) struct Events {
    /// The run
    pub(crate) run: String,
    /// From this number on
    #[arg(long, value_name = "SEQ", default_value_t = 0, hide_default_value = true)]
    pub(crate) from: u64,
    /// Go on as they come, with partial results between them
    #[arg(long)]
    pub(crate) follow: bool,
    /// Follow until this [default: parked]
    #[arg(long, value_enum, requires = "follow")]
    pub(crate) until: Option<Until>,
}

/// Runs by name, or all that fit.
#[derive(Debug, Args)]
pub(crate) struct Chosen {
    /// The runs
    #[arg(required_unless_present = "all_matching")]
    pub(crate) run: Vec<String>,
    /// Which, with --all-matching.
    #[command(flatten)]
    pub(crate) filter: Filter,
    /// All runs that fit the filters, in place of names
    #[arg(long, conflicts_with = "run")]
    pub(crate) all_matching: bool,
    /// Only say which runs that would be
    #[arg(long, requires = "all_matching")]
    pub(crate) dry_run: bool,
}

/// What to cancel.
#[derive(Debug, Args)]
pub(crate) struct Cancel {
    /// Which.
    #[command(flatten)]
    pub(crate) chosen: Chosen,
    /// Wait until running ones have ended
    #[arg(long)]
    pub(crate) wait: bool,
    /// Wait no longer than this
    #[arg(long, value_name = "D", allow_hyphen_values = true, requires = "wait")]
    pub(crate) timeout: Option<String>,
}

/// What to redrive.
#[derive(Debug, Args)]
pub(crate) struct Redrive {
    /// Which.
    #[command(flatten)]
    pub(crate) chosen: Chosen,
    /// A new step limit
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) max_steps: Option<String>,
}

/// Where to fork.
#[derive(Debug, Args)]
pub(crate) struct Fork {
    /// The run
    pub(crate) run: String,
    /// After this event
    #[arg(long, value_name = "SEQ")]
    pub(crate) at: u64,
    /// The keys to change: JSON, @FILE, or -
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    pub(crate) edit: Option<String>,
    /// The new run's session
    #[arg(long, value_name = "S")]
    pub(crate) session: Option<String>,
}

/// Where to replay.
#[derive(Debug, Args)]
pub(crate) struct Replay {
    /// The run
    pub(crate) run: String,
    /// After this event
    #[arg(long, value_name = "SEQ")]
    pub(crate) at: u64,
    /// The new run's session
    #[arg(long, value_name = "S")]
    pub(crate) session: Option<String>,
}

/// What to edit.
#[derive(Debug, Args)]
pub(crate) struct Edit {
    /// The run
    pub(crate) run: String,
    /// The keys to change: JSON, @FILE, or -
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    pub(crate) update: String,
    /// Only when this is the newest event
    #[arg(long, value_name = "N")]
    pub(crate) if_seq: u64,
    /// Who changes it [default: the user of the system]
    #[arg(long, value_name = "WHO")]
    pub(crate) by: Option<String>,
}

/// Which question, and who answers.
#[derive(Debug, Args)]
pub(crate) struct Target {
    /// The run
    pub(crate) run: Option<String>,
    /// The active run of this session, in place of a run
    #[arg(long, value_name = "S")]
    pub(crate) session: Option<String>,
    /// The question by its id
    #[arg(long, value_name = "ID", conflicts_with = "gate")]
    pub(crate) interrupt: Option<String>,
    /// The gate by its name, open or yet to open
    #[arg(long, value_name = "NAME")]
    pub(crate) gate: Option<String>,
    /// Who answers [default: the user of the system]
    #[arg(long, value_name = "WHO")]
    pub(crate) by: Option<String>,
    /// A group that they speak for; may be given several times
    #[arg(long, value_name = "NAME")]
    pub(crate) group: Vec<String>,
    /// A comment
    #[arg(long, value_name = "T", allow_hyphen_values = true)]
    pub(crate) comment: Option<String>,
    /// The idempotency key of this answer
    #[arg(long)]
    pub(crate) key: Option<String>,
    /// The hash of what the decision is about, as it was shown
    #[arg(long, value_name = "HASH")]
    pub(crate) args_hash: Option<String>,
}

/// An answer.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("whom").required(true).args(["run", "session"]))]
pub(crate) struct Signal {
    /// To which question.
    #[command(flatten)]
    pub(crate) target: Target,
    /// The answer: JSON, @FILE, or -
    #[arg(long, value_name = "JSON", allow_hyphen_values = true)]
    pub(crate) answer: Option<String>,
    /// Several answers, all or none: a JSON object by the ids of the questions, @FILE, or -
    #[arg(
        long,
        value_name = "JSON",
        conflicts_with_all = ["answer", "interrupt", "gate", "args_hash"]
    )]
    pub(crate) answers: Option<String>,
}

/// A yes or a no.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("whom").required(true).args(["run", "session", "all_matching"]))]
pub(crate) struct Decision {
    /// To which question.
    #[command(flatten)]
    pub(crate) target: Target,
    /// All open questions that fit the conditions, in place of a run; --group is one of these too
    #[arg(long, conflicts_with_all = ["interrupt", "gate", "key", "args_hash"])]
    pub(crate) all_matching: bool,
    /// Only list the questions that would be answered
    #[arg(long, requires = "all_matching")]
    pub(crate) dry_run: bool,
    /// Answer without asking
    #[arg(long, requires = "all_matching", conflicts_with = "dry_run")]
    pub(crate) yes: bool,
    /// Which, with --all-matching.
    #[command(flatten)]
    pub(crate) which: Which,
}
