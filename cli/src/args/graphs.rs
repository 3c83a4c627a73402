//! The options of `graphs`.

use clap::{Args, Subcommand, ValueEnum};

/// What to do with graphs.
#[derive(Debug, Subcommand)]
pub(crate) enum Graphs {
    /// List the graphs of this program and those that workers published
    List,
    /// Draw a graph
    Show(Show),
    /// Report every fault of this program's graphs
    Validate,
    /// Say what this program's versions would do to parked and queued runs
    Check,
    /// Pin runs to another version in which their position exists
    Migrate(Migrate),
}

/// What to draw.
#[derive(Debug, Args)]
pub(crate) struct Show {
    /// The graph
    pub(crate) graph: String,
    /// How [default: text]
    #[arg(long, value_enum)]
    pub(crate) format: Option<Format>,
    /// With the position of this run
    #[arg(long)]
    pub(crate) run: Option<String>,
}

/// A form of drawing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// A list for the terminal
    Text,
    /// For Markdown and web pages
    Mermaid,
    /// For Graphviz
    Dot,
    /// For programs
    Json,
}

/// What to move.
#[derive(Debug, Args)]
pub(crate) struct Migrate {
    /// The graph
    pub(crate) graph: String,
    /// The structure the runs are pinned to
    #[arg(long, value_name = "F")]
    pub(crate) from: String,
    /// The structure they are to be pinned to
    #[arg(long, value_name = "F")]
    pub(crate) to: String,
    /// Only say what would happen
    #[arg(long)]
    pub(crate) dry_run: bool,
}
