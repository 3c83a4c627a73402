//! Stable codes and the one shape of "this input is not acceptable".
//!
//! Everything that can be said no to before anything is stored says it with a [`Refusal`]: the
//! library, the command line and the HTTP API then show the same code, field and exit status.

use std::fmt;

/// A stable error code. The text never changes; scripts and clients match on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
#[expect(missing_docs, reason = "each variant is its own text; the table is `Code::row`")]
pub enum Code {
    Ambiguous,
    ArgsChanged,
    BodyEmpty,
    ConfigTiming,
    Cursor,
    DeadlinePast,
    Decided,
    Depth,
    DupKey,
    Duration,
    EnvelopeVersion,
    Fenced,
    Graph,
    GraphCycleSubgraph,
    GraphLimit,
    GraphMismatch,
    Id,
    IdempotencyConflict,
    Json,
    LinkExpired,
    LinkForeign,
    LinkInvalid,
    LinkUsed,
    NoCheckpoint,
    NoQuestion,
    NotAllowed,
    NotFailed,
    NotFound,
    Number,
    QueueFull,
    Range,
    RunActive,
    RunExists,
    RunFinal,
    Schema,
    SchemaNewer,
    Sequence,
    SessionBusy,
    SessionGraph,
    SqliteDir,
    SqliteLocked,
    SqliteNetworkFs,
    SqliteNotDb,
    SqliteReadonly,
    SqliteVersion,
    SqliteWalNewer,
    StaleInterrupt,
    StateCorrupt,
    StoreFull,
    StoreInsecure,
    StoreReset,
    StoreUnavailable,
    StoreUnsafe,
    StoreUnsupported,
    Time,
    TooLarge,
    Type,
    UnknownField,
    UnknownGraph,
    UnknownOutcome,
    UnknownVersion,
    Usage,
    Voted,
}

impl Code {
    /// The text of the code and the HTTP status it goes with.
    const fn row(self) -> (&'static str, u16) {
        match self {
            Self::Ambiguous => ("E_AMBIGUOUS", 409),
            Self::ArgsChanged => ("E_ARGS_CHANGED", 409),
            Self::BodyEmpty => ("E_BODY_EMPTY", 400),
            Self::ConfigTiming => ("E_CONFIG_TIMING", 400),
            Self::Cursor => ("E_CURSOR", 400),
            Self::DeadlinePast => ("E_DEADLINE_PAST", 400),
            Self::Decided => ("E_DECIDED", 409),
            Self::Depth => ("E_DEPTH", 400),
            Self::DupKey => ("E_DUP_KEY", 400),
            Self::Duration => ("E_DURATION", 400),
            Self::EnvelopeVersion => ("E_ENVELOPE_VERSION", 400),
            Self::Fenced => ("E_FENCED", 409),
            Self::Graph => ("E_GRAPH", 400),
            Self::GraphCycleSubgraph => ("E_GRAPH_CYCLE_SUBGRAPH", 400),
            Self::GraphLimit => ("E_GRAPH_LIMIT", 400),
            Self::GraphMismatch => ("E_GRAPH_MISMATCH", 409),
            Self::Id => ("E_ID", 400),
            Self::IdempotencyConflict => ("E_IDEMPOTENCY_CONFLICT", 409),
            Self::Json => ("E_JSON", 400),
            Self::LinkExpired => ("E_LINK_EXPIRED", 403),
            Self::LinkForeign => ("E_LINK_FOREIGN", 403),
            Self::LinkInvalid => ("E_LINK_INVALID", 403),
            Self::LinkUsed => ("E_LINK_USED", 403),
            Self::NoCheckpoint => ("E_NO_CHECKPOINT", 404),
            Self::NoQuestion => ("E_NO_QUESTION", 404),
            Self::NotAllowed => ("E_NOT_ALLOWED", 403),
            Self::NotFailed => ("E_NOT_FAILED", 409),
            Self::NotFound => ("E_NOT_FOUND", 404),
            Self::Number => ("E_NUMBER", 400),
            Self::QueueFull => ("E_QUEUE_FULL", 429),
            Self::Range => ("E_RANGE", 400),
            Self::RunActive => ("E_RUN_ACTIVE", 409),
            Self::RunExists => ("E_RUN_EXISTS", 409),
            Self::RunFinal => ("E_RUN_FINAL", 409),
            Self::Schema => ("E_SCHEMA", 422),
            Self::SchemaNewer => ("E_SCHEMA_NEWER", 503),
            Self::Sequence => ("E_SEQ", 409),
            Self::SessionBusy => ("E_SESSION_BUSY", 409),
            Self::SessionGraph => ("E_SESSION_GRAPH", 409),
            Self::SqliteDir => ("E_SQLITE_DIR", 503),
            Self::SqliteLocked => ("E_SQLITE_LOCKED", 503),
            Self::SqliteNetworkFs => ("E_SQLITE_NETWORK_FS", 503),
            Self::SqliteNotDb => ("E_SQLITE_NOT_DB", 503),
            Self::SqliteReadonly => ("E_SQLITE_READONLY", 503),
            Self::SqliteVersion => ("E_SQLITE_VERSION", 503),
            Self::SqliteWalNewer => ("E_SQLITE_WAL_NEWER", 503),
            Self::StaleInterrupt => ("E_STALE_INTERRUPT", 409),
            Self::StateCorrupt => ("E_STATE_CORRUPT", 503),
            Self::StoreFull => ("E_STORE_FULL", 503),
            Self::StoreInsecure => ("E_STORE_INSECURE", 400),
            Self::StoreReset => ("E_STORE_RESET", 503),
            Self::StoreUnavailable => ("E_STORE_UNAVAILABLE", 503),
            Self::StoreUnsafe => ("E_STORE_UNSAFE", 503),
            Self::StoreUnsupported => ("E_STORE_UNSUPPORTED", 503),
            Self::Time => ("E_TIME", 400),
            Self::TooLarge => ("E_TOO_LARGE", 413),
            Self::Type => ("E_TYPE", 400),
            Self::UnknownField => ("E_UNKNOWN_FIELD", 400),
            Self::UnknownGraph => ("E_UNKNOWN_GRAPH", 404),
            Self::UnknownOutcome => ("E_UNKNOWN_OUTCOME", 504),
            Self::UnknownVersion => ("E_UNKNOWN_VERSION", 404),
            Self::Usage => ("E_USAGE", 400),
            Self::Voted => ("E_VOTED", 409),
        }
    }

    /// The stable text, such as `E_TOO_LARGE`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.row().0
    }

    /// The HTTP status that goes with the code.
    #[must_use]
    pub const fn http_status(self) -> u16 {
        self.row().1
    }

    /// The exit status of the command line; it follows the HTTP status.
    #[must_use]
    pub const fn exit_status(self) -> u8 {
        if matches!(self, Self::Usage) {
            return 2;
        }
        match self.http_status() {
            404 => 4,
            409 => 5,
            503 => 6,
            504 => 7,
            _ => 3,
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// An input that is not acceptable: which rule, where, and the value that was wrong.
///
/// ```
/// use holdpoint_graph::{Code, Refusal};
/// let no = Refusal::new(Code::Range, "priority", "is 12, the highest is 9");
/// assert_eq!(no.to_string(), "priority is 12, the highest is 9");
/// assert_eq!(no.code().exit_status(), 3);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    code: Code,
    field: String,
    message: String,
}

impl Refusal {
    /// A refusal of `field`; `message` goes on where the field's name ends ("is 12, ...").
    pub fn new(code: Code, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { code, field: field.into(), message: message.into() }
    }

    /// The stable code.
    #[must_use]
    pub const fn code(&self) -> Code {
        self.code
    }

    /// The field, or the path inside it (`initial.items[3]`).
    #[must_use]
    pub fn field(&self) -> &str {
        &self.field
    }

    /// What is wrong with the field.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The same refusal with `prefix` before its field, for a value inside another.
    #[must_use]
    pub fn within(mut self, prefix: &str) -> Self {
        self.field = match self.field.as_str() {
            "" => prefix.to_owned(),
            field if field.starts_with('[') => format!("{prefix}{field}"),
            field => format!("{prefix}.{field}"),
        };
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            return f.write_str(&self.message);
        }
        write!(f, "{} {}", self.field, self.message)
    }
}

impl std::error::Error for Refusal {}

/// Shows text that came from outside on one line and without control characters.
///
/// ```
/// assert_eq!(holdpoint_graph::printable("a\u{1b}[2Jb", 20), "a\\x1b[2Jb");
/// assert_eq!(holdpoint_graph::printable("long text", 4), "long…");
/// ```
#[must_use]
pub fn printable(text: &str, chars_max: usize) -> String {
    let mut out = String::new();
    for (count, c) in text.chars().enumerate() {
        if count == chars_max {
            out.push('…');
            break;
        }
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if u32::from(c) < 0x20 || u32::from(c) == 0x7f => {
                out.push_str(&format!("\\x{:02x}", u32::from(c)));
            }
            '\u{80}'..='\u{9f}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => out.push(c),
        }
    }
    out
}

/// Text that came from outside in quotes, as [`printable`] shows it.
///
/// ```
/// assert_eq!(holdpoint_graph::shown("a\u{1b}[2J", 20), "\"a\\x1b[2J\"");
/// ```
#[must_use]
pub fn shown(text: &str, chars_max: usize) -> String {
    format!("\"{}\"", printable(text, chars_max))
}

/// Cuts an error text at a character boundary, with a note, so that a store never keeps megabytes.
#[must_use]
pub fn clip_error(text: &str) -> String {
    let max = crate::limits::ERROR_CHARS_MAX;
    match text.char_indices().nth(max) {
        None => text.to_owned(),
        Some((at, _)) => {
            format!("{} … (cut, {} bytes in all)", text.get(..at).unwrap_or_default(), text.len())
        }
    }
}
