//! All checkers over one run of the torture.

use serde::Serialize;

use crate::{
    Dump, History, Report, Targets,
    canary::{self, Canary},
    cancels::{self, Cancels},
    count::Count,
    effects::{self, Effects},
    facts::Facts,
    fault,
    fencing::{self, Fencing},
    liveness::{self, Liveness},
    nodes::{self, Nodes},
    queue::{self, TotalQueue},
    recovery::{self, Recovery},
    signals::{self, Signals},
    steals::{self, Steals},
    stored::{self, Stored},
};

/// What the harness knows and no line says.
#[derive(Debug, Clone, Default)]
pub struct Extra {
    /// The lease of the workers, in ms.
    pub lease_ms: u64,
    /// The grace of the reaper, in ms.
    pub grace_ms: u64,
    /// Graphs that nobody serves, so that their runs wait.
    pub unserved: Vec<String>,
    /// Whether the store's mode may lose what it acknowledged as `buffered`.
    pub may_lose: bool,
    /// Processes of tools, workers or servers that were left over; their command lines.
    pub leftovers: Vec<String>,
    /// Secrets that were planted.
    pub canaries: Vec<String>,
    /// Texts to search for them: the logs of all processes, by name.
    pub logs: Vec<(String, String)>,
    /// Planted bugs that were caught, and those that were not.
    pub planted: Option<(Vec<String>, Vec<String>)>,
}

/// How often the injector did what.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Injected {
    /// Kills of workers, with or without their supervisor.
    pub worker_kills: u64,
    /// Kills of the store's server.
    pub store_kills: u64,
    /// Power cuts.
    pub power_cuts: u64,
    /// Pauses of workers.
    pub pauses: u64,
    /// Cuts of workers' ways to the store.
    pub cuts: u64,
}

/// What the checkers found.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Findings {
    /// How often the injector did what.
    pub injected: Injected,
    /// What became of the enqueues.
    pub queue: TotalQueue,
    /// What owners did to each other.
    pub fencing: Fencing,
    /// How often nodes ran.
    pub nodes: Nodes,
    /// What the effect service saw.
    pub effects: Effects,
    /// What became of answers.
    pub signals: Signals,
    /// What became of cancels.
    pub cancels: Cancels,
    /// What is wrong with what the store holds.
    pub stored: Stored,
    /// What did not heal.
    pub liveness: Liveness,
    /// How long runs stood still.
    pub recovery: Recovery,
    /// Losses of live workers.
    pub steals: Steals,
    /// Where secrets were found.
    pub canary: Canary,
    /// Processes that were left over.
    pub leftovers: Vec<String>,
    /// Whether losses are allowed.
    pub may_lose: bool,
    /// The longest time after the death of a machine, in ms.
    pub machine_ms_max: u64,
    /// Planted bugs: caught, and not.
    pub planted: Option<(Vec<String>, Vec<String>)>,
}

/// Judges a run of the torture.
#[must_use]
pub fn check(history: &History, dump: &Dump, extra: &Extra) -> Findings {
    let facts = Facts::new(history, dump, extra.may_lose);
    Findings {
        injected: Injected {
            worker_kills: facts.times(fault::KILL) + facts.times(fault::MACHINE),
            store_kills: facts.times(fault::STORE_KILL),
            power_cuts: facts.times(fault::POWER),
            pauses: facts.times(fault::PAUSE),
            cuts: facts.times(fault::CUT),
        },
        queue: queue::check(&facts),
        fencing: fencing::check(&facts),
        nodes: nodes::check(&facts),
        effects: effects::check(&facts),
        signals: signals::check(&facts),
        cancels: cancels::check(&facts, extra.lease_ms),
        stored: stored::check(&facts),
        liveness: liveness::check(&facts, &extra.unserved),
        recovery: recovery::check(&facts, extra.lease_ms),
        steals: steals::check(&facts, extra.lease_ms),
        canary: canary::check(&facts, &extra.canaries, &extra.logs),
        leftovers: extra.leftovers.clone(),
        may_lose: extra.may_lose,
        // The second is for the ticks of the reaper and the claim.
        machine_ms_max: extra.lease_ms + extra.grace_ms + 1_000,
        planted: extra.planted.clone(),
    }
}

impl Findings {
    /// The table of figures against these targets.
    #[must_use]
    pub fn report(&self, targets: &Targets) -> Report {
        Report::new(self, targets)
    }

    /// What is wrong, one text for each fault that has a place, at most 20 of each kind.
    #[must_use]
    pub fn faults(&self) -> Vec<String> {
        let Self { queue, fencing, nodes, effects, signals, cancels, stored, .. } = self;
        let counts: [(&str, &Count); 27] = [
            ("lost", &queue.lost),
            ("unexpected", &queue.unexpected),
            ("duplicated", &queue.duplicated),
            ("refused but stored", &queue.refused_but_stored),
            ("stale write accepted", &fencing.accepted),
            ("two owners", &fencing.overlaps),
            ("ran after its commit", &nodes.after_commit),
            ("ran ahead", &nodes.ran_ahead),
            ("done but never ran", &nodes.never_ran),
            ("unsafe effect twice", &effects.unsafe_twice),
            ("effect under another key", &effects.other_key),
            ("key of two effects", &effects.shared_key),
            ("effect without a class", &effects.unclassed),
            ("answer not applied", &signals.not_applied),
            ("answer applied twice", &signals.applied_twice),
            ("foreign answer", &signals.foreign),
            ("refused answer applied", &signals.refused_but_applied),
            ("step after a cancel", &cancels.stepped),
            ("node after a cancel", &cancels.began),
            ("cancelled and not ended", &cancels.unended),
            ("conservation", &stored.conservation),
            ("chain", &stored.chain),
            ("stuck", &self.liveness.stuck),
            ("not healed", &self.liveness.unhealed),
            ("false steal", &self.steals.stolen),
            ("secret", &self.canary.found),
            ("left over", &Count::of(&self.leftovers)),
        ];
        let each = |(kind, count): &(&str, &Count)| {
            count.examples.iter().map(|example| format!("{kind}: {example}")).collect::<Vec<_>>()
        };
        counts.iter().flat_map(each).collect()
    }
}
