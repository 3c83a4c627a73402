//! The arguments of `gates`: signed links to questions.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// What to do with one question.
#[derive(Debug, Subcommand)]
pub(crate) enum GatesCommand {
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
