//! The options of `worker` and `dev`.

use clap::Args;

/// How to work.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct Worker {
    /// Runs at once [default: 8 per core]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) concurrency: Option<String>,
    /// Claim from these queues only [default: default]
    #[arg(long, value_name = "A,B")]
    pub(crate) queues: Option<String>,
    /// How long a claim holds without a sign of life [default: 10s]
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    pub(crate) lease: Option<String>,
    /// How long runs may go on after SIGTERM [default: 30s]
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    pub(crate) drain: Option<String>,
    /// Lost workers in a row that end a run [default: 3]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) max_crashes: Option<String>,
    /// Work in this process, without one that watches it
    #[arg(long)]
    pub(crate) no_supervisor: bool,
    /// End when nothing is queued, due within a second, or running
    #[arg(long)]
    pub(crate) exit_when_idle: bool,
}

/// How to develop.
#[derive(Debug, Args)]
pub(crate) struct Dev {
    /// Runs at once [default: 8 per core]
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    pub(crate) concurrency: Option<String>,
    /// End when nothing is queued, due within a second, or running
    #[arg(long)]
    pub(crate) exit_when_idle: bool,
}
