//! The bounded worlds. Each lets a few things happen often instead of all things once.

use super::journal::{Address, Node};
use super::rules::Guard;
use super::world::{Budget, World};

const NONE: Budget = Budget {
    crashes: 0,
    losses: 0,
    lost_replies: 0,
    copies: 0,
    releases: 0,
    timers: 0,
    failovers: 0,
    cancels: 0,
    redrives: 0,
};

/// Two gates, and four signals sent twice each: early, late, to another opening.
pub(crate) static SIGNALS: World = World {
    name: "signals",
    workers: 2,
    plan: &[Node::Work, Node::Gate('a'), Node::Gate('b'), Node::Work],
    signals: &[Address::Gate('a'), Address::Opening(0), Address::Gate('b'), Address::Opening(1)],
    sends: 2,
    budget: NONE,
    row_max: 2,
    life_max: 3,
};

/// The same gate twice, as in a loop: an answer must not reach the next visit. Owners are lost,
/// and timers wake the run without an answer.
pub(crate) static VISITS: World = World {
    name: "visits",
    workers: 2,
    plan: &[Node::Gate('a'), Node::Gate('a')],
    signals: &[Address::Gate('a'), Address::Opening(0), Address::Gate('a')],
    sends: 2,
    budget: Budget { losses: 1, timers: 1, ..NONE },
    row_max: 2,
    life_max: 3,
};

/// A cancel at any moment, between lost workers.
pub(crate) static CANCELS: World = World {
    name: "cancels",
    workers: 2,
    plan: &[Node::Work, Node::Gate('a'), Node::Work],
    signals: &[Address::Gate('a')],
    sends: 1,
    budget: Budget { cancels: 1, losses: 2, lost_replies: 1, ..NONE },
    row_max: 2,
    life_max: 3,
};

/// Workers that are lost until the run is given up, and sent on.
pub(crate) static CRASHES: World = World {
    name: "crashes",
    workers: 2,
    plan: &[Node::Gate('a'), Node::Work],
    signals: &[Address::Gate('a')],
    sends: 1,
    budget: Budget { losses: 4, releases: 1, redrives: 1, ..NONE },
    row_max: 2,
    life_max: 3,
};

/// A network that loses replies and delivers copies late.
pub(crate) static REPLIES: World = World {
    name: "replies",
    workers: 2,
    plan: &[Node::Work, Node::Gate('a'), Node::Work, Node::Work],
    signals: &[Address::Gate('a')],
    sends: 1,
    budget: Budget { lost_replies: 2, copies: 1, losses: 1, crashes: 1, ..NONE },
    row_max: 2,
    life_max: 3,
};

/// Three workers of which some take themselves for the owner, and a store that forgets a claim.
pub(crate) static ZOMBIES: World = World {
    name: "zombies",
    workers: 3,
    plan: &[Node::Work, Node::Gate('a'), Node::Work],
    signals: &[Address::Gate('a')],
    sends: 1,
    budget: Budget { losses: 2, failovers: 1, releases: 1, ..NONE },
    row_max: 3,
    life_max: 3,
};

/// A world in which the absence of the guard shows.
pub(crate) const fn showing(guard: Guard) -> &'static World {
    match guard {
        Guard::ParkReadsInbox
        | Guard::OwnOpening
        | Guard::KeptWhileRunning
        | Guard::FirstAnswerStands
        | Guard::SignalWakes => &SIGNALS,
        Guard::SignalOnce
        | Guard::EarlyAnswerCounts
        | Guard::AnswerConsumed
        | Guard::AnswerRead => &VISITS,
        Guard::WishAtCommit
        | Guard::WishAtClaim
        | Guard::WishOutlivesOwner
        | Guard::CancelPosition
        | Guard::CancelFindsEnd
        | Guard::FirstEndStands => &CANCELS,
        Guard::RowCap
        | Guard::LifeCap
        | Guard::ReleaseCountsBack
        | Guard::ParkCountsBack
        | Guard::ProgressCountsBack
        | Guard::RedriveCountsBack => &CRASHES,
        Guard::RequestIds | Guard::CommitPosition | Guard::ClaimRepeats => &REPLIES,
        Guard::CommitFencing
        | Guard::FreshPair
        | Guard::ParkFencing
        | Guard::Nonce
        | Guard::RenewFencing
        | Guard::ReleaseFencing => &ZOMBIES,
    }
}
