//! The arguments of `gates`: the list of open questions, and signed links to them.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// Which open questions.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Conditions")]
pub(crate) struct Which {
    /// Of runs of this graph
    #[arg(long, value_name = "G")]
    pub(crate) graph: Option<String>,
    /// That ask this person, or nobody in particular
    #[arg(long, value_name = "A")]
    pub(crate) assignee: Option<String>,
    /// Of runs with this tag
    #[arg(long, value_name = "K=V")]
    pub(crate) tag: Option<String>,
    /// Open for longer than this, such as 48h
    #[arg(long, value_name = "D", allow_hyphen_values = true)]
    pub(crate) older_than: Option<String>,
}

/// In which order.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Sort {
    /// Oldest first
    #[default]
    Age,
    /// Soonest deadline first
    Deadline,
}

/// A page of open questions.
#[derive(Debug, Args)]
pub(crate) struct Inbox {
    /// Which.
    #[command(flatten)]
    pub(crate) which: Which,
    /// That ask this group; with --assignee: that ask them or the group. May be given several times
    #[arg(long, value_name = "NAME", help_heading = "Conditions")]
    pub(crate) group: Vec<String>,
    /// By age, oldest first, or by deadline, soonest first
    #[arg(long, value_enum, default_value_t, hide_possible_values = true, help_heading = "Page")]
    pub(crate) sort: Sort,
    /// So many at most [default: 50]
    #[arg(long, value_name = "N", allow_hyphen_values = true, help_heading = "Page")]
    pub(crate) limit: Option<String>,
    /// Go on after this cursor
    #[arg(long, value_name = "CURSOR", help_heading = "Page")]
    pub(crate) after: Option<String>,
}

/// What to watch.
#[derive(Debug, Args)]
pub(crate) struct Watch {
    /// Which.
    #[command(flatten)]
    pub(crate) which: Which,
    /// That ask this group; with --assignee: that ask them or the group. May be given several times
    #[arg(long, value_name = "NAME", help_heading = "Conditions")]
    pub(crate) group: Vec<String>,
}

/// What to go through.
#[derive(Debug, Args)]
pub(crate) struct Pick {
    /// Which.
    #[command(flatten)]
    pub(crate) which: Which,
    /// A group that you speak for: only what asks one of these groups. May be given several times
    #[arg(long, value_name = "NAME", help_heading = "Conditions")]
    pub(crate) group: Vec<String>,
    /// Who answers [default: the user of the system]
    #[arg(long, value_name = "WHO")]
    pub(crate) by: Option<String>,
}

/// What to do with open questions.
#[derive(Debug, Subcommand)]
pub(crate) enum GatesCommand {
    /// Show open questions and what becomes of them, as it happens
    Watch(Watch),
    /// Go through open questions with single keys
    Pick(Pick),
    /// Make a signed link that answers one question once
    Link(MakeLink),
    /// Answer with a signed link
    Redeem(Redeem),
    /// Print a new key for a ring of link keys
    NewKey {
        /// The key's name: letters, digits, - and _
        id: String,
    },
}

/// Where the keys of links are.
#[derive(Debug, Args)]
pub(crate) struct Keys {
    /// The file with the ring of keys [env: HOLDPOINT_LINK_KEYS]
    #[arg(long, env = "HOLDPOINT_LINK_KEYS", hide_env = true, value_name = "FILE")]
    pub(crate) keys: PathBuf,
}

/// A link to make.
#[derive(Debug, Args)]
pub(crate) struct MakeLink {
    /// The run
    pub(crate) run: String,
    /// The question, when several are open
    #[arg(long, value_name = "ID")]
    pub(crate) interrupt: Option<String>,
    /// In whose name it answers
    #[arg(long, value_name = "WHO")]
    pub(crate) by: String,
    /// A group that they speak for; may be given several times
    #[arg(long, value_name = "NAME")]
    pub(crate) group: Vec<String>,
    /// A choice that it may make, such as approve; may be given several times [default: all]
    #[arg(long, value_name = "CHOICE")]
    pub(crate) allow: Vec<String>,
    /// How long it holds
    #[arg(long, value_name = "D", default_value = "48h")]
    pub(crate) expires_in: String,
    /// The ring that signs it.
    #[command(flatten)]
    pub(crate) keys: Keys,
}

/// A link to use.
#[derive(Debug, Args)]
#[command(group = clap::ArgGroup::new("what").required(true))]
pub(crate) struct Redeem {
    /// The token
    pub(crate) token: String,
    /// Say yes
    #[arg(long, group = "what")]
    pub(crate) approve: bool,
    /// Say no
    #[arg(long, group = "what")]
    pub(crate) reject: bool,
    /// Any answer: JSON, @FILE, or -
    #[arg(long, value_name = "JSON", allow_hyphen_values = true, group = "what")]
    pub(crate) answer: Option<String>,
    /// Only say what the link is for
    #[arg(long, group = "what")]
    pub(crate) look: bool,
    /// A comment
    #[arg(long, value_name = "T", allow_hyphen_values = true)]
    pub(crate) comment: Option<String>,
    /// The ring that verifies it.
    #[command(flatten)]
    pub(crate) keys: Keys,
}
