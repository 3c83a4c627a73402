//! The injector: does what the plan says when the time has come, and undoes it in time.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use anyhow::Result;
use holdpoint_storage::{Clock as _, SystemClock};
use holdpoint_testkit::{ProxyMode, Signal as ServerSignal};
use holdpoint_torture_check::{Phase, fault};
use rustix::process::Signal;

use crate::{
    plan::{CALM, Fault, HOT, Planned},
    rig::{Rig, slot_name},
    slots::WorkerProcess,
};

/// The pause between two looks at the plan and at the processes.
const LOOK_EVERY: Duration = Duration::from_millis(2);
/// How many workers a supervisor may lose in a row before it is killed with the next one: each
/// makes it wait twice as long, up to seconds in which nobody is there to be killed.
const LOSSES_MAX: u32 = 2;
/// The time between two kills that are owed.
const PAY_EVERY_MS: u64 = 60;
/// The age at which a worker is killed: before it has claimed anything there is nothing to see.
const GROWN: Duration = Duration::from_millis(150);
/// What each piece waits on a slow link.
const DELAY: Duration = Duration::from_millis(30);

/// The pause between two tries of a command that undoes something.
const COMMAND_AGAIN_MS: u64 = 50;
/// The key by which the scripts of a program with planted bugs move their clock.
const CLOCK: &str = "torture-clock-ms";

/// Works through a plan.
pub(crate) struct Injector<'a> {
    rig: &'a mut Rig,
    since: Instant,
    /// What is to be undone, by when and in the order in which it was done.
    undo: BTreeMap<(u64, u64), Undo>,
    number: u64,
    /// Kills that found nobody: they wait for whoever comes up first.
    owed: usize,
    /// When the next of them may follow.
    pay_at_ms: u64,
    /// How many workers the supervisor of a slot has lost: it waits ever longer before the next.
    losses: [u32; HOT + CALM],
    /// Workers that are stopped: nobody kills them before they have gone on.
    stopped: Vec<usize>,
    told: Told,
}

/// What was done, for the summary; the report's figures come from the history.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Told {
    /// Faults that found nothing to harm, such as a kill of a worker that was not there.
    pub(crate) in_vain: u64,
}

#[derive(Debug)]
enum Undo {
    Continue(usize, WorkerProcess),
    Pass(usize),
    FastSync,
    Resume,
    Command(&'static [&'static str]),
}

impl<'a> Injector<'a> {
    pub(crate) fn new(rig: &'a mut Rig) -> Self {
        Self {
            rig,
            since: SystemClock.monotonic(),
            undo: BTreeMap::new(),
            number: 0,
            owed: 0,
            pay_at_ms: 0,
            losses: [0; HOT + CALM],
            stopped: Vec::new(),
            told: Told::default(),
        }
    }

    /// Does the plan until `end_ms`, then heals everything.
    pub(crate) fn run(mut self, plan: &[Planned], end_ms: u64) -> Result<Told> {
        self.since = SystemClock.monotonic();
        for planned in plan {
            self.wait_until(planned.at_ms)?;
            self.inflict(planned.fault)?;
        }
        self.wait_until(end_ms)?;
        self.heal()?;
        self.told.in_vain += self.owed as u64;
        Ok(self.told)
    }

    fn now_ms(&self) -> u64 {
        let passed = SystemClock.monotonic().saturating_duration_since(self.since);
        u64::try_from(passed.as_millis()).unwrap_or(u64::MAX)
    }

    /// Waits, undoes what is due, and starts again what ended.
    fn wait_until(&mut self, at_ms: u64) -> Result<()> {
        loop {
            let now_ms = self.now_ms();
            while let Some(due) = self.undo.first_entry().filter(|due| due.key().0 <= now_ms) {
                let undo = due.remove();
                self.mend(undo)?;
            }
            self.rig.ensure()?;
            self.pay()?;
            if now_ms >= at_ms {
                return Ok(());
            }
            std::thread::sleep(LOOK_EVERY);
        }
    }

    /// Undoes everything: from here on all must heal.
    fn heal(&mut self) -> Result<()> {
        while let Some((_, undo)) = self.undo.pop_first() {
            self.mend(undo)?;
        }
        for link in self.rig.links() {
            link.set(ProxyMode::Pass);
        }
        self.rig.ensure()?;
        self.rig.say(fault::HEAL, Phase::Ok, "store")
    }

    fn inflict(&mut self, fault: Fault) -> Result<()> {
        match fault {
            Fault::Kill(slot) => return self.kill(slot),
            Fault::Machine(slot) => return self.machine(slot),
            Fault::Term(slot) => return self.terminate(slot),
            Fault::Pause(slot, for_ms) => return self.pause(slot, for_ms),
            Fault::Hold(link, for_ms) => self.link(link, Some(ProxyMode::Hold), for_ms)?,
            Fault::DropReplies(link, for_ms) => {
                self.link(link, Some(ProxyMode::DropReplies), for_ms)?;
            }
            Fault::Delay(link, for_ms) => self.link(link, Some(ProxyMode::Delay(DELAY)), for_ms)?,
            Fault::Cut(link) => self.link(link, None, 0)?,
            Fault::StoreKill => return self.fell(false),
            Fault::PowerCut => return self.fell(true),
            Fault::SlowSync(each_ms, for_ms) => {
                self.rig.say(fault::STALL, Phase::Invoke, "store")?;
                self.rig.slow_syncs(Duration::from_millis(each_ms))?;
                self.later(for_ms, Undo::FastSync);
            }
            Fault::Stall(for_ms) => {
                self.rig.say(fault::STALL, Phase::Invoke, "store")?;
                self.rig.freeze_server(ServerSignal::Stop);
                self.later(for_ms, Undo::Resume);
            }
            Fault::ScriptFlush => self.command(&["SCRIPT", "FLUSH"]),
            Fault::ClientPause(for_ms) => {
                self.rig.say(fault::STALL, Phase::Invoke, "store")?;
                self.command(&["CLIENT", "PAUSE", &for_ms.to_string()]);
                self.later(for_ms, Undo::Resume);
            }
            Fault::Full(for_ms) => {
                self.command(&["CONFIG", "SET", "maxmemory", "1"]);
                self.later(for_ms, Undo::Command(&["CONFIG", "SET", "maxmemory", "0"]));
            }
            Fault::Clock(by_ms, for_ms) => {
                self.command(&["SET", CLOCK, &by_ms.to_string()]);
                self.later(for_ms, Undo::Command(&["DEL", CLOCK]));
            }
        }
        Ok(())
    }

    /// `kill -9` of a worker process; of another slot's when that one has none now.
    fn kill(&mut self, slot: usize) -> Result<()> {
        if !self.kill_one(slot)? {
            self.owed += 1;
        }
        Ok(())
    }

    fn kill_one(&mut self, slot: usize) -> Result<bool> {
        for slot in self.candidates(slot) {
            let grown = self.rig.worker_of(slot).filter(|worker| worker.age() >= GROWN);
            let Some(worker) = grown else { continue };
            if let Some(losses) = self.losses.get_mut(slot) {
                *losses += 1;
                if *losses > LOSSES_MAX {
                    *losses = 0;
                    return self.rig.kill_machine(slot);
                }
            }
            self.rig.say(fault::KILL, Phase::Invoke, &worker.worker)?;
            worker.send(Signal::KILL);
            return Ok(true);
        }
        Ok(false)
    }

    /// Makes up for a kill that found nobody; never all at once, when a store is back.
    fn pay(&mut self) -> Result<()> {
        let now_ms = self.now_ms();
        if self.owed > 0 && now_ms >= self.pay_at_ms && self.kill_one(self.owed % HOT)? {
            self.owed -= 1;
            self.pay_at_ms = now_ms + PAY_EVERY_MS;
        }
        Ok(())
    }

    fn machine(&mut self, slot: usize) -> Result<()> {
        for slot in self.candidates(slot) {
            let is_grown = self.rig.worker_of(slot).is_some_and(|worker| worker.age() >= GROWN);
            if is_grown && self.rig.kill_machine(slot)? {
                if let Some(losses) = self.losses.get_mut(slot) {
                    *losses = 0;
                }
                return self.rig.ensure();
            }
        }
        self.owed += 1;
        Ok(())
    }

    /// This slot, and when it is a hot one the others of them, without those that are stopped.
    fn candidates(&self, slot: usize) -> Vec<usize> {
        let others = (0..HOT).filter(|other| *other != slot && slot < HOT);
        let all = std::iter::once(slot).chain(others);
        all.filter(|slot| !self.stopped.contains(slot)).collect()
    }

    fn terminate(&mut self, slot: usize) -> Result<()> {
        if self.stopped.contains(&slot) {
            self.told.in_vain += 1;
            return Ok(());
        }
        if let Some(worker) = self.rig.worker_of(slot) {
            self.rig.say(fault::TERM, Phase::Invoke, &worker.worker)?;
        }
        if let Some(part) = self.rig.workers.get_mut(slot) {
            part.terminate();
        }
        Ok(())
    }

    fn pause(&mut self, slot: usize, for_ms: u64) -> Result<()> {
        let worker = self.rig.worker_of(slot).filter(|_| !self.stopped.contains(&slot));
        match worker.filter(WorkerProcess::stop) {
            Some(worker) => {
                self.rig.say(fault::PAUSE, Phase::Invoke, &worker.worker)?;
                self.stopped.push(slot);
                self.later(for_ms, Undo::Continue(slot, worker));
            }
            None => self.told.in_vain += 1,
        }
        Ok(())
    }

    /// Sets a link's mode for a while, or closes its connections.
    fn link(&mut self, link: usize, mode: Option<ProxyMode>, for_ms: u64) -> Result<()> {
        let Some(proxy) = self.rig.link(link) else { return Ok(()) };
        match mode {
            Some(mode) => proxy.set(mode),
            None => drop(proxy.cut()),
        }
        self.rig.say(fault::CUT, Phase::Invoke, &slot_name(link))?;
        match mode {
            Some(_) => self.later(for_ms, Undo::Pass(link)),
            None => self.rig.say(fault::CUT, Phase::Ok, &slot_name(link))?,
        }
        Ok(())
    }

    fn fell(&mut self, is_power_cut: bool) -> Result<()> {
        if self.rig.server().is_none() {
            // All processes are new ones after it.
            self.stopped.clear();
            self.undo.retain(|_, undo| !matches!(undo, Undo::Continue(..)));
        }
        // The plan waits meanwhile: else a store that takes longer to load than the plan has
        // between two of its ends would never be there at all.
        let begun = SystemClock.monotonic();
        let done = self.rig.fell_store(is_power_cut);
        self.since += SystemClock.monotonic().saturating_duration_since(begun);
        done
    }

    fn is_frozen(&self) -> bool {
        self.undo.values().any(|undo| matches!(undo, Undo::Resume))
    }

    /// A command to the server; one that stands still does not get it.
    fn command(&mut self, command: &[&str]) {
        match self.rig.server().filter(|_| !self.is_frozen()) {
            Some(server) => drop(server.cli(command)),
            None => self.told.in_vain += 1,
        }
    }

    fn later(&mut self, for_ms: u64, undo: Undo) {
        self.number += 1;
        self.undo.insert((self.now_ms() + for_ms, self.number), undo);
    }

    fn mend(&mut self, undo: Undo) -> Result<()> {
        match undo {
            Undo::Continue(slot, worker) => {
                self.stopped.retain(|stopped| *stopped != slot);
                self.rig.say(fault::PAUSE, Phase::Ok, &worker.worker)?;
                worker.send(Signal::CONT);
            }
            Undo::Pass(link) => {
                if let Some(proxy) = self.rig.link(link) {
                    proxy.set(ProxyMode::Pass);
                }
                self.rig.say(fault::CUT, Phase::Ok, &slot_name(link))?;
            }
            Undo::FastSync => {
                self.rig.slow_syncs(Duration::ZERO)?;
                self.rig.say(fault::STALL, Phase::Ok, "store")?;
            }
            // It has to wait for a server that stands still.
            Undo::Command(_) if self.is_frozen() => self.later(COMMAND_AGAIN_MS, undo),
            Undo::Command(command) => self.command(command),
            Undo::Resume => {
                self.rig.freeze_server(ServerSignal::Continue);
                self.rig.say(fault::STALL, Phase::Ok, "store")?;
            }
        }
        Ok(())
    }
}
