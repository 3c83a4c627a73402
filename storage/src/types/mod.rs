//! What callers say to a store and what it answers. Plain data, the same for every backend.

mod append;
mod claim;
mod commit;
mod damage;
mod enqueue;
mod head;
mod lane;
mod question;
mod signal;
mod upkeep;

pub use append::{AppendKind, AppendReply, AppendRequest, ChainHash};
pub use claim::{ClaimRequest, ClaimedRun, Claims, Lease, Loss, Renewal};
pub use commit::{CommitReply, CommitRequest, Disposition, OpenedInterrupt, Vote};
pub use damage::{Change, Damage};
pub use enqueue::{EnqueueReply, Enqueued, IfBusy, NewRun};
pub use head::{
    CancelWish, Cursor, JournalPart, OpenQuestion, Page, Partial, RunFilter, RunHead, SessionRecord,
};
pub use lane::{Durability, Lane, When};
pub use question::{
    FoundQuestion, GateOrder, ListedQuestion, QuestionFilter, QuestionPage, QuestionSearch,
    from_word, is_of_asked, question_lists, to_word,
};
pub use signal::{Address, InboxEntry, SignalReply, SignalRequest, SignalsReply};
pub use upkeep::{
    Finding, GraphRecord, LaneStats, Level, Retention, Stats, TickRequest, Ticked, WorkerRecord,
};
