//! What Holdpoint asks of a store: five traits by caller, the data they speak, the stored form of
//! a journal, and the conformance suite that defines a backend.
//!
//! This crate knows no database client. `holdpoint-storage-sqlite` and `holdpoint-storage-redis`
//! implement [`Store`]; the executor, the producer and the worker call it.

#[cfg(feature = "conformance")]
pub mod conformance;
mod error;
#[cfg(feature = "planted")]
mod planted;
mod record;
mod seal;
mod signal;
mod store;
mod system;
mod types;

pub use error::StoreError;
#[cfg(feature = "planted")]
pub use planted::{ENV_PLANTED, Planted};
pub use record::{Chain, Record, meaning_hash};
pub use seal::{open as open_payload, seal as seal_payload};
pub use signal::SignalRecord;
pub use store::{Claim, Commit, Enqueue, Inspect, Maintain, Store, StoreResult};
pub use system::{Clock, Random, SharedClock, SystemClock};
pub use types::{
    Address, AppendKind, AppendReply, AppendRequest, CancelWish, ChainHash, Change, ClaimRequest,
    ClaimedRun, Claims, CommitReply, CommitRequest, Cursor, Damage, Disposition, Durability,
    EnqueueReply, Enqueued, Finding, FoundQuestion, GateOrder, GraphRecord, IfBusy, InboxEntry,
    JournalPart, Lane, LaneStats, Lease, Level, ListedQuestion, Loss, NewRun, OpenQuestion,
    OpenedInterrupt, Page, Partial, QuestionFilter, QuestionPage, QuestionSearch, Renewal,
    Retention, RunFilter, RunHead, SessionRecord, SignalReply, SignalRequest, SignalsReply, Stats,
    TickRequest, Ticked, Vote, When, WorkerRecord, from_word, is_of_asked, question_lists, to_word,
};
