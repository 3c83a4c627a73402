//! Every limit of Holdpoint, with its unit and the reason for it.
//!
//! Whoever refuses an input names one of these constants, so that a message, a test and the
//! documentation can never disagree about a number.

/// Bytes of a run's payload, and of one item of a batch. Larger ones hold the store's one thread.
pub const PAYLOAD_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of a run's state as JSON, checked when a node returns. Larger values go by reference.
pub const STATE_BYTES_MAX: usize = 4 * 1024 * 1024;
/// Bytes of an answer to an interrupt.
pub const ANSWER_BYTES_MAX: usize = 256 * 1024;
/// Levels of nesting of any JSON value; the root counts as one. An envelope around a stored value
/// must stay below the 127 levels that the parser itself can read back.
pub const JSON_DEPTH_MAX: usize = 64;
/// Bytes of an id: graph, run, session, queue, node, gate, key.
pub const ID_BYTES_MAX: usize = 128;
/// Distinct tasks of one run over its whole life. A cycle made in good faith ends here.
pub const STEPS_MAX_DEFAULT: u64 = 1_000;
/// The highest step limit that a run may ask for.
pub const STEPS_MAX: u64 = 1_000_000;
/// Nodes of a compiled graph, sub-graphs included.
pub const NODES_MAX: usize = 10_000;
/// Edges of a compiled graph.
pub const EDGES_MAX: usize = 99_999;
/// Branches of one fork; each carries its own copy of the state.
pub const FORK_WIDTH_MAX: usize = 10_000;
/// Forks inside forks of a running graph. Each is [`FORK_JSON_LEVELS`] levels of a snapshot's JSON.
pub const FORK_DEPTH_MAX: usize = 12;
/// Levels of nesting that one fork adds to the JSON of a run's progress.
pub const FORK_JSON_LEVELS: usize = 4;
/// Levels around the deepest value of a progress, as it is stored or begins another run.
pub const PROGRESS_JSON_LEVELS: usize = 12;
/// Characters of an error text that is stored; longer ones are cut with a note.
pub const ERROR_CHARS_MAX: usize = 4_096;
/// Characters of an error's code; longer ones are cut.
pub const ERROR_CODE_CHARS_MAX: usize = 128;
/// Items of one batch that is written at once: a script holds Redis for about 11 µs an item.
pub const BATCH_CHUNK: usize = 100;
/// Items of one batch call.
pub const BATCH_ITEMS_MAX: usize = 10_000;
/// The highest priority; higher runs first.
pub const PRIORITY_MAX: u8 = 9;
/// The priority of a run that names none.
pub const PRIORITY_DEFAULT: u8 = 4;
/// The longest delay, in ms: five years.
pub const DELAY_MS_MAX: i64 = 5 * 365 * 24 * 3_600 * 1_000;
/// Tags of one run.
pub const TAGS_MAX: usize = 16;
/// Bytes of a comment on a decision, and of the name of who decided.
pub const COMMENT_BYTES_MAX: usize = 4_096;
/// Runs that wait in one queue; enqueue is refused beyond it.
pub const QUEUE_DEPTH_MAX: u64 = 1_000_000;
/// Rows of one page.
pub const PAGE_MAX: usize = 200;
/// Groups of one person, as a list of open questions is asked for them: each is a list to merge.
pub const GROUPS_MAX: usize = 32;
/// Requests of answers that a run remembers, so that a late copy of one answers nothing again.
pub const REQUESTS_KEPT: usize = 64;
/// Answers of one call: so many that a run remembers the request of each.
pub const ANSWERS_MAX: usize = REQUESTS_KEPT;
/// A snapshot is written when the journal since the last one exceeds this multiple of its size ...
pub const SNAPSHOT_FACTOR: usize = 2;
/// ... plus this many bytes, so that short runs never write one.
pub const SNAPSHOT_FLOOR_BYTES: usize = 4_096;

const _: () = assert!(JSON_DEPTH_MAX < 127, "an envelope adds levels and must stay readable");
const _: () = assert!(
    FORK_DEPTH_MAX * FORK_JSON_LEVELS + JSON_DEPTH_MAX + PROGRESS_JSON_LEVELS <= 127,
    "a snapshot inside the deepest fork must stay readable"
);
const _: () = assert!(PAYLOAD_BYTES_MAX <= STATE_BYTES_MAX, "a payload becomes a state");
const _: () = assert!(STEPS_MAX_DEFAULT <= STEPS_MAX, "the default is within the range");
