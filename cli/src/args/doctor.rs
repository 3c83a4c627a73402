//! The options of `doctor`.

use std::path::PathBuf;

use clap::Args;

/// What to do about what is found.
#[derive(Debug, Args)]
pub(crate) struct Doctor {
    /// Mend what contradicts itself, after a backup of what is changed
    #[arg(long)]
    pub(crate) repair: bool,
    /// Only say what a repair would do
    #[arg(long, requires = "repair")]
    pub(crate) dry_run: bool,
    /// Where the backup goes, a new file [default: holdpoint-repair-TIME.jsonl]
    #[arg(long, requires = "repair", value_name = "FILE")]
    pub(crate) backup: Option<PathBuf>,
}
