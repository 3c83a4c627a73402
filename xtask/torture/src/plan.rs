//! The plan: a seed made into a list of faults with their times. Pure, so that a seed replays it.
//!
//! Eight *hot* workers are killed all the time and live a few hundred ms. Two *calm* workers are
//! paused for longer than their lease, and seldom killed: only they serve the runs that are to
//! outlive several leases. The store falls in every other stretch of 5 s, so that recovery is
//! also seen with a store that stands.

use holdpoint_torture_check::Targets;

use crate::{chance::Chance, options::StoreKind};

/// Workers that are killed all the time.
pub(crate) const HOT: usize = 8;
/// Workers that are paused.
pub(crate) const CALM: usize = 2;
/// The link of the load, after those of the workers.
pub(crate) const LOAD_LINK: usize = HOT + CALM;

/// The stretches with and without faults of the store, in ms.
const STRETCH_MS: u64 = 5_000;

/// What happens at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Planned {
    /// When, in ms after the begin of the load.
    pub(crate) at_ms: u64,
    /// What.
    pub(crate) fault: Fault,
}

/// A fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// `kill -9` of the worker's process under its supervisor.
    Kill(usize),
    /// `kill -9` of worker and supervisor.
    Machine(usize),
    /// SIGTERM to the supervisor.
    Term(usize),
    /// SIGSTOP of the worker's process for so many ms.
    Pause(usize, u64),
    /// A black hole on the link for so many ms.
    Hold(usize, u64),
    /// Replies are dropped on the link for so many ms.
    DropReplies(usize, u64),
    /// All connections of the link are closed.
    Cut(usize),
    /// Everything on the link waits 30 ms, for so many ms.
    Delay(usize, u64),
    /// `kill -9` of what owns the store's files, and a restart.
    StoreKill,
    /// The same, and what was not synced is gone.
    PowerCut,
    /// Each sync takes so many ms, for so many ms.
    SlowSync(u64, u64),
    /// The server stops for so many ms.
    Stall(u64),
    /// The server forgets its scripts.
    ScriptFlush,
    /// The server holds all commands for so many ms.
    ClientPause(u64),
    /// The server has no memory left for so many ms.
    Full(u64),
    /// The clock of the scripts is ahead by so many ms, for so many ms.
    Clock(u64, u64),
}

/// The plan of a seed.
pub(crate) fn plan(seed: u64, seconds: u64, targets: &Targets, store: StoreKind) -> Vec<Planned> {
    let mut chance = Chance::new(seed, "plan");
    let end_ms = seconds * 1_000;
    let mut plan = Vec::new();
    // What finds nothing to harm does not count, so more is planned.
    let more = |count: u64| count + count / 5 + 1;
    let mut add = |at_ms: u64, fault: Fault| plan.push(Planned { at_ms, fault });
    for fault in
        [(more(targets.store_kills), Fault::StoreKill), (more(targets.power_cuts), Fault::PowerCut)]
    {
        for _ in 0..fault.0 {
            add(in_stretches(&mut chance, end_ms), fault.1);
        }
    }
    for (at_ms, slot) in pauses(&mut chance, end_ms, more(targets.pauses)) {
        add(at_ms, Fault::Pause(slot, chance.between(1_300, 2_300)));
    }
    for _ in 0..kills_to_plan(targets, store) {
        let end = if chance.percent(3) { HOT + CALM } else { HOT };
        let slot = index(&mut chance, end);
        let fault = if chance.percent(45) { Fault::Machine(slot) } else { Fault::Kill(slot) };
        add(chance.below(end_ms), fault);
    }
    for _ in 0..targets.worker_kills / 80 {
        add(chance.below(end_ms), Fault::Term(index(&mut chance, HOT + CALM)));
    }
    for _ in 0..seconds / 30 {
        let (each_ms, for_ms) = (*chance.one_of(&[50, 300]), chance.between(500, 1_500));
        add(in_stretches(&mut chance, end_ms), Fault::SlowSync(each_ms, for_ms));
    }
    if store != StoreKind::Sqlite {
        for _ in 0..more(targets.cuts) {
            add(chance.below(end_ms), cut(&mut chance));
        }
        for _ in 0..seconds / 30 {
            add(in_stretches(&mut chance, end_ms), Fault::Stall(chance.between(500, 1_800)));
            add(in_stretches(&mut chance, end_ms), Fault::ClientPause(chance.between(50, 600)));
        }
        for _ in 0..seconds / 10 {
            add(chance.below(end_ms), Fault::ScriptFlush);
        }
    }
    plan.sort_by_key(|planned| planned.at_ms);
    plan
}

/// A fault of a file's store kills all workers too.
fn kills_to_plan(targets: &Targets, store: StoreKind) -> u64 {
    let with_store = match store {
        StoreKind::Sqlite => (targets.store_kills + targets.power_cuts) * (HOT + CALM) as u64,
        StoreKind::Redis | StoreKind::RedisAlways => 0,
    };
    let all = targets.worker_kills + targets.worker_kills / 6 + 1;
    all.saturating_sub(with_store).max(all / 3)
}

/// A time in a stretch in which the store falls.
fn in_stretches(chance: &mut Chance, end_ms: u64) -> u64 {
    let stretches = (end_ms / (2 * STRETCH_MS)).max(1);
    let at_ms = (chance.below(stretches) * 2 + 1) * STRETCH_MS + chance.below(STRETCH_MS);
    at_ms.min(end_ms.saturating_sub(1))
}

/// One pause in each of equal parts of the time, so that no two of a worker overlap.
fn pauses(chance: &mut Chance, end_ms: u64, count: u64) -> Vec<(u64, usize)> {
    let each = count.div_ceil(CALM as u64).max(1);
    let part_ms = end_ms / each;
    // One of them is at work while the other stands.
    let begin =
        move |slot: usize, part| part * part_ms + (slot - HOT) as u64 * part_ms / CALM as u64;
    let of_slot = |slot| (0..each).map(move |part| (begin(slot, part), slot));
    let times = (HOT..HOT + CALM).flat_map(of_slot);
    times.map(|(from_ms, slot)| (from_ms + chance.below(part_ms / 4 + 1), slot)).collect()
}

fn cut(chance: &mut Chance) -> Fault {
    let link = index(chance, LOAD_LINK + 1);
    match chance.below(10) {
        0..3 => Fault::Hold(link, chance.between(300, 2_000)),
        3..6 => Fault::DropReplies(link, chance.between(50, 400)),
        6..9 => Fault::Cut(link),
        _ => Fault::Delay(link, chance.between(300, 1_500)),
    }
}

fn index(chance: &mut Chance, end: usize) -> usize {
    usize::try_from(chance.below(end as u64)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::Options;

    fn of(seed: u64, store: StoreKind) -> Vec<Planned> {
        let options = Options::parse(&["--ci".to_owned()]).unwrap();
        plan(seed, options.seconds, &options.targets(store), store)
    }

    fn count(plan: &[Planned], is_meant: impl Fn(Fault) -> bool) -> usize {
        plan.iter().filter(|planned| is_meant(planned.fault)).count()
    }

    #[test]
    fn a_seed_is_a_plan() {
        assert_eq!(of(1, StoreKind::RedisAlways), of(1, StoreKind::RedisAlways));
        assert_ne!(of(1, StoreKind::RedisAlways), of(2, StoreKind::RedisAlways));
    }

    #[test]
    fn a_plan_holds_more_than_the_targets() {
        let plan = of(3, StoreKind::RedisAlways);
        assert!(count(&plan, |f| matches!(f, Fault::Kill(_) | Fault::Machine(_))) > 1_000);
        assert!(count(&plan, |f| f == Fault::StoreKill) > 60);
        assert!(count(&plan, |f| f == Fault::PowerCut) > 20);
        assert!(count(&plan, |f| matches!(f, Fault::Pause(..))) > 40);
        let is_cut = |f| {
            matches!(f, Fault::Hold(..) | Fault::DropReplies(..) | Fault::Cut(_) | Fault::Delay(..))
        };
        assert!(count(&plan, is_cut) > 40);
    }

    #[test]
    fn pauses_of_a_worker_do_not_overlap() {
        let plan = of(5, StoreKind::Sqlite);
        let mut free_at = [0; HOT + CALM];
        for Planned { at_ms, fault } in plan {
            if let Fault::Pause(slot, for_ms) = fault {
                assert!(at_ms >= free_at[slot], "{at_ms} of {slot}");
                free_at[slot] = at_ms + for_ms;
            }
        }
    }

    #[test]
    fn the_store_stands_in_every_other_stretch() {
        for planned in of(7, StoreKind::Sqlite) {
            if matches!(planned.fault, Fault::StoreKill | Fault::PowerCut) {
                assert_eq!(planned.at_ms / STRETCH_MS % 2, 1, "{planned:?}");
            }
        }
    }
}
