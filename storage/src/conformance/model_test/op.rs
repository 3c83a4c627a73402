//! The operations of a random sequence, in small numbers that mean something only beside a state.

use proptest::{option, prelude::*, sample::Index};

use crate::IfBusy;

/// One operation. Picks (`Index`) choose among what exists when it is run.
#[derive(Debug, Clone)]
pub(super) enum Op {
    Enqueue {
        items: Vec<Item>,
        partial: bool,
    },
    Claim {
        worker: u8,
        max: usize,
        oldest_first: bool,
    },
    RepeatClaim {
        worker: u8,
    },
    Renew {
        lease: LeasePick,
    },
    Release {
        lease: LeasePick,
    },
    Commit {
        lease: LeasePick,
        write: Write,
        becomes: Becomes,
    },
    Signal {
        run: Index,
        to: To,
        args: Option<bool>,
        ballot: Option<Cast>,
    },
    /// Several answers to one run, all or none.
    SignalAll {
        run: Index,
        answers: Vec<(To, Option<bool>, Option<Cast>)>,
    },
    Append {
        run: Index,
        kind: Kind,
        is_moved: bool,
    },
    StartNow {
        run: Index,
    },
    Lost {
        worker: u8,
    },
    Tick,
    Pause {
        queue: u8,
        paused: bool,
    },
    /// An earlier request again: its reply was lost.
    Repeat {
        back: usize,
    },
}

#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) run: u8,
    pub(super) session: Option<u8>,
    pub(super) if_busy: IfBusy,
    pub(super) key: Option<u8>,
    pub(super) payload: u8,
    pub(super) queue: u8,
    pub(super) graph: u8,
    pub(super) pin: Option<u8>,
    pub(super) priority: u8,
    pub(super) time: StartTime,
    pub(super) depth_max: u64,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum StartTime {
    Now,
    Later,
    /// Now, with a time to start by that has come already.
    Expired,
    /// Now, with a time to end by that has come already.
    Overdue,
}

/// A lease: of a run that has an owner, or any that was ever granted.
#[derive(Debug, Clone)]
pub(super) enum LeasePick {
    Live(Index),
    Any(Index),
}

#[derive(Debug, Clone)]
pub(super) struct Write {
    pub(super) records: u64,
    pub(super) opens: Option<Option<u8>>,
    /// Whom the new question asks: a bit each.
    pub(super) asks: u8,
    pub(super) takes_inbox: bool,
    pub(super) closes_oldest: bool,
    pub(super) has_snapshot: bool,
    pub(super) is_progress: bool,
    pub(super) pin: Option<u8>,
    pub(super) is_misplaced: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Becomes {
    Continue,
    Park,
    ParkUntilPast,
    ParkUntilLater,
    RescheduleNow,
    RescheduleLater,
    Complete,
    Fail,
    Cancel,
}

#[derive(Debug, Clone)]
pub(super) enum To {
    Open(Index),
    Unknown,
    Gate(u8),
    Only,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    Cancel,
    Rollback,
    /// Whom the question asks from then on: a bit each.
    Edit(u8),
    Redrive,
    Migrate(u8, u8),
}

/// A vote: who, for what, and how many such decide.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cast {
    pub(super) voter: u8,
    pub(super) choice: u8,
    pub(super) needed: u32,
}

fn cast() -> impl Strategy<Value = Cast> {
    (0..3_u8, 0..2_u8, 1..4_u32).prop_map(|(voter, choice, needed)| Cast { voter, choice, needed })
}

/// Sequences of about forty operations.
pub(super) fn sequences() -> impl Strategy<Value = Vec<Op>> {
    proptest::collection::vec(op(), 20..60)
}

fn op() -> impl Strategy<Value = Op> {
    let index = any::<Index>;
    prop_oneof![
        6 => enqueue(),
        6 => (0..2_u8, 1..4_usize, weighted(10)).prop_map(|(worker, max, oldest_first)| {
            Op::Claim { worker, max, oldest_first }
        }),
        1 => (0..2_u8).prop_map(|worker| Op::RepeatClaim { worker }),
        1 => lease().prop_map(|lease| Op::Renew { lease }),
        1 => lease().prop_map(|lease| Op::Release { lease }),
        10 => (lease(), write(), becomes())
            .prop_map(|(lease, write, becomes)| Op::Commit { lease, write, becomes }),
        5 => (index(), answer())
            .prop_map(|(run, (to, args, ballot))| Op::Signal { run, to, args, ballot }),
        3 => (index(), proptest::collection::vec(answer(), 0..4))
            .prop_map(|(run, answers)| Op::SignalAll { run, answers }),
        4 => (index(), kind(), weighted(10))
            .prop_map(|(run, kind, is_moved)| Op::Append { run, kind, is_moved }),
        1 => index().prop_map(|run| Op::StartNow { run }),
        2 => (0..2_u8).prop_map(|worker| Op::Lost { worker }),
        1 => Just(Op::Tick),
        1 => (0..2_u8, weighted(30)).prop_map(|(queue, paused)| Op::Pause { queue, paused }),
        4 => (1..6_usize).prop_map(|back| Op::Repeat { back }),
    ]
}

/// True in so many of a hundred cases.
fn weighted(percent: u8) -> impl Strategy<Value = bool> {
    (0..100_u8).prop_map(move |drawn| drawn >= 100 - percent)
}

fn enqueue() -> impl Strategy<Value = Op> {
    let one = item().prop_map(|item| Op::Enqueue { items: vec![item], partial: false });
    let several = (proptest::collection::vec(item(), 0..4), any::<bool>())
        .prop_map(|(items, partial)| Op::Enqueue { items, partial });
    prop_oneof![3 => one, 1 => several]
}

fn item() -> impl Strategy<Value = Item> {
    let session = (
        option::weighted(0.6, 0..2_u8),
        prop_oneof![
            4 => Just(IfBusy::Enqueue),
            1 => Just(IfBusy::Reject),
            1 => Just(IfBusy::Interrupt),
            1 => Just(IfBusy::Rollback),
        ],
    );
    let identity = (0..8_u8, option::weighted(0.3, 0..3_u8), 0..2_u8);
    let lane =
        (0..2_u8, prop_oneof![6 => Just(0_u8), 1 => Just(1_u8)], option::weighted(0.2, 0..2_u8));
    let time = prop_oneof![
        8 => Just(StartTime::Now),
        2 => Just(StartTime::Later),
        1 => Just(StartTime::Expired),
        1 => Just(StartTime::Overdue),
    ];
    let depth_max = prop_oneof![6 => Just(100_u64), 1 => 1..4_u64];
    (session, identity, lane, 0..3_u8, time, depth_max).prop_map(
        |(
            (session, if_busy),
            (run, key, payload),
            (queue, graph, pin),
            priority,
            time,
            depth_max,
        )| {
            Item {
                run,
                session,
                if_busy,
                key,
                payload,
                queue,
                graph,
                pin,
                priority,
                time,
                depth_max,
            }
        },
    )
}

fn lease() -> impl Strategy<Value = LeasePick> {
    prop_oneof![
        8 => any::<Index>().prop_map(LeasePick::Live),
        1 => any::<Index>().prop_map(LeasePick::Any),
    ]
}

fn write() -> impl Strategy<Value = Write> {
    let questions =
        (option::weighted(0.5, option::weighted(0.7, 0..2_u8)), weighted(50), weighted(20));
    let state = (weighted(20), weighted(40), option::weighted(0.2, 0..2_u8), weighted(4));
    (0..3_u64, questions, 0..16_u8, state).prop_map(|(records, questions, asks, state)| {
        let (opens, takes_inbox, closes_oldest) = questions;
        let (has_snapshot, is_progress, pin, is_misplaced) = state;
        Write {
            records,
            opens,
            asks,
            takes_inbox,
            closes_oldest,
            has_snapshot,
            is_progress,
            pin,
            is_misplaced,
        }
    })
}

fn becomes() -> impl Strategy<Value = Becomes> {
    prop_oneof![
        4 => Just(Becomes::Continue),
        4 => Just(Becomes::Park),
        1 => Just(Becomes::ParkUntilPast),
        1 => Just(Becomes::ParkUntilLater),
        1 => Just(Becomes::RescheduleNow),
        1 => Just(Becomes::RescheduleLater),
        2 => Just(Becomes::Complete),
        2 => Just(Becomes::Fail),
        2 => Just(Becomes::Cancel),
    ]
}

fn answer() -> impl Strategy<Value = (To, Option<bool>, Option<Cast>)> {
    (to(), option::weighted(0.3, weighted(70)), option::weighted(0.5, cast()))
}

fn to() -> impl Strategy<Value = To> {
    prop_oneof![
        3 => any::<Index>().prop_map(To::Open),
        1 => Just(To::Unknown),
        3 => (0..2_u8).prop_map(To::Gate),
        2 => Just(To::Only),
    ]
}

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        2 => Just(Kind::Cancel),
        1 => Just(Kind::Rollback),
        2 => (0..16_u8).prop_map(Kind::Edit),
        3 => Just(Kind::Redrive),
        2 => (0..2_u8, 0..2_u8).prop_map(|(from, to)| Kind::Migrate(from, to)),
    ]
}
