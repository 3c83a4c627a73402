//! The guards that the model is made of. Each can be left out, and its absence must be noticed.

/// One guard of the store, of the owner or of the sender of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Guard {
    /// A commit names the newest pair.
    CommitFencing,
    /// A commit that was taken before is answered again and not taken again.
    RequestIds,
    /// A park looks into the inbox before the run rests.
    ParkReadsInbox,
    /// A signal that is sent again is looked for in the inbox and in the journal first.
    SignalOnce,
    /// A signal answers its own opening and no other.
    OwnOpening,
    /// A signal to a run that a worker has is kept.
    KeptWhileRunning,
    /// A claim makes a new pair.
    FreshPair,
    /// A park names the newest pair.
    ParkFencing,
    /// A run that lost too many workers in a row is not started again.
    RowCap,
    /// A run that lost too many workers in its life is not started again.
    LifeCap,
    /// The nonce is part of the pair: the epoch alone repeats after a failover.
    Nonce,
    /// A renewal names the newest pair.
    RenewFencing,
    /// A release names the newest pair.
    ReleaseFencing,
    /// A commit continues the journal where it ends.
    CommitPosition,
    /// A cancel appends to the journal where it ends.
    CancelPosition,
    /// After the wish to cancel, a commit may only end the run as cancelled.
    WishAtCommit,
    /// The owner looks for the wish to cancel before it starts anything.
    WishAtClaim,
    /// The wish to cancel stays when the owner is lost.
    WishOutlivesOwner,
    /// A run that ended cannot be cancelled.
    CancelFindsEnd,
    /// A run that ended cannot be ended again by an owner.
    FirstEndStands,
    /// A release takes the claim back out of the counts of lost workers.
    ReleaseCountsBack,
    /// A park takes the claim back out of the counts of lost workers.
    ParkCountsBack,
    /// Progress begins the count in a row anew.
    ProgressCountsBack,
    /// A redrive begins all counts anew.
    RedriveCountsBack,
    /// The first answer of an opening stands.
    FirstAnswerStands,
    /// An early answer that waits for a gate is the first answer of its opening.
    EarlyAnswerCounts,
    /// A signal wakes a parked run.
    SignalWakes,
    /// An answer leaves the inbox with the commit that takes it.
    AnswerConsumed,
    /// A gate is passed on a recorded answer, and not because the run stands there again.
    AnswerRead,
    /// A claim whose reply was lost is answered again.
    ClaimRepeats,
}

impl Guard {
    /// All of them.
    pub(crate) const ALL: [Self; 30] = [
        Self::CommitFencing,
        Self::RequestIds,
        Self::ParkReadsInbox,
        Self::SignalOnce,
        Self::OwnOpening,
        Self::KeptWhileRunning,
        Self::FreshPair,
        Self::ParkFencing,
        Self::RowCap,
        Self::LifeCap,
        Self::Nonce,
        Self::RenewFencing,
        Self::ReleaseFencing,
        Self::CommitPosition,
        Self::CancelPosition,
        Self::WishAtCommit,
        Self::WishAtClaim,
        Self::WishOutlivesOwner,
        Self::CancelFindsEnd,
        Self::FirstEndStands,
        Self::ReleaseCountsBack,
        Self::ParkCountsBack,
        Self::ProgressCountsBack,
        Self::RedriveCountsBack,
        Self::FirstAnswerStands,
        Self::EarlyAnswerCounts,
        Self::SignalWakes,
        Self::AnswerConsumed,
        Self::AnswerRead,
        Self::ClaimRepeats,
    ];
}

/// Which guards are there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules {
    /// The one that is left out.
    pub(crate) without: Option<Guard>,
}

impl Rules {
    /// Whether the guard is there.
    pub(crate) fn keep(self, guard: Guard) -> bool {
        self.without != Some(guard)
    }
}
