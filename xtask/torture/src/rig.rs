//! Everything that runs during a torture: the store, the links to it, workers and load.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context as _, Result};
use holdpoint_testkit::{Appendfsync, Proxy, RedisServer, Signal};
use holdpoint_torture_check::{Line, Op, Phase, Recorder, Shim, Tail, fault};
use serde_json::json;

use crate::{
    effects::{self, ENV_EFFECTS, ENV_TOKEN},
    graphs::{LEASE, SLOW_QUEUE},
    options::{Options, StoreKind},
    places::NAMESPACE,
    plan::{CALM, HOT, LOAD_LINK},
    recorder::{ENV_HISTORY, ENV_SLOT},
    slots::{self, Env, Part, WorkerProcess},
};

/// Runs per second of each of the two producers.
const RATE: u64 = 32;
/// Runs at once of a worker that is killed all the time, and of one that is not.
const HOT_CONCURRENCY: usize = 2;
const CALM_CONCURRENCY: usize = 8;
/// Deaf owners, each of which tries a stale write every 2 s or so.
const ZOMBIES: usize = 2;
/// How long a worker may drain: one that is killed all the time not long, the others for longer
/// than their lease, so that they have to renew while they drain.
const HOT_DRAIN: Duration = Duration::from_millis(500);
const CALM_DRAIN: Duration = Duration::from_secs(3);

/// What runs.
pub(crate) struct Rig {
    store: Place,
    shim: Shim,
    /// One way to the store for each worker, and one for the load.
    links: Vec<Proxy>,
    /// The workers: hot ones first.
    pub(crate) workers: Vec<Part>,
    /// Who enqueues, and who claims and goes deaf.
    pub(crate) producers: Vec<Part>,
    /// Who answers.
    pub(crate) answers: Part,
    pub(crate) recorder: Recorder,
    /// How often a load process was started; part of the ids of what it makes.
    round: u64,
    folder: PathBuf,
    base: Base,
}

enum Place {
    Redis(RedisServer),
    Sqlite(PathBuf),
}

/// What every process is given.
struct Base {
    seed: u64,
    env: Env,
}

impl Rig {
    /// Builds everything in `folder`; nothing but the store runs yet.
    pub(crate) fn new(
        options: &Options,
        kind: StoreKind,
        folder: &Path,
        effects: &str,
    ) -> Result<Self> {
        let history = folder.join("history");
        for name in ["history", "logs", "store"] {
            std::fs::create_dir_all(folder.join(name))?;
        }
        let files = folder.join("store");
        let shim = Shim::new(&folder.join("shim"), std::slice::from_ref(&files))?;
        let store = match kind {
            StoreKind::Sqlite => Place::Sqlite(files.join("torture.db")),
            StoreKind::Redis => Place::Redis(redis(Appendfsync::Everysec, &files, &shim)),
            StoreKind::RedisAlways => Place::Redis(redis(Appendfsync::Always, &files, &shim)),
        };
        let links = match &store {
            Place::Redis(server) => (0..=LOAD_LINK).map(|_| Proxy::to_redis(server)).collect(),
            Place::Sqlite(_) => Vec::new(),
        };
        let mut env: Env = vec![
            (ENV_HISTORY.into(), history.clone().into()),
            (ENV_EFFECTS.into(), effects.into()),
            (ENV_TOKEN.into(), effects::token(options.seed).into()),
        ];
        if let Some(trial) = &options.trial {
            env.extend(trial.env());
        }
        if matches!(store, Place::Sqlite(_)) {
            env.extend(shim.env());
        }
        let recorder = Recorder::open(&history, "harness")?;
        let base = Base { seed: options.seed, env };
        let log = folder.join("logs/answers.log");
        let mut rig = Self {
            store,
            shim,
            links,
            workers: Vec::new(),
            producers: Vec::new(),
            answers: Part::new(Vec::new(), Vec::new(), log),
            recorder,
            round: 0,
            folder: folder.to_owned(),
            base,
        };
        rig.workers = (0..HOT + CALM).map(|slot| rig.worker(slot)).collect();
        rig.renew_load();
        Ok(rig)
    }

    /// Starts what does not run. Answers how workers ended that nobody had told to.
    pub(crate) fn ensure(&mut self) -> Result<()> {
        for part in self.workers.iter_mut().chain(&mut self.producers) {
            part.ensure()?;
        }
        self.answers.ensure()?;
        Ok(())
    }

    /// Load processes under new names: an id is never used by two processes.
    fn renew_load(&mut self) {
        self.round += 1;
        let part = |role: &str, name: String| {
            let url = self.url(LOAD_LINK);
            let numbers = [self.base.seed.to_string(), RATE.to_string()];
            let mut args = vec!["load".to_owned(), role.to_owned(), name.clone(), url];
            args.extend(numbers);
            Part::new(args, self.base.env.clone(), self.log(&name))
        };
        let round = self.round;
        let producers = (1..=2).map(|number| part("produce", format!("p{number}-{round}")));
        let zombies = (1..=ZOMBIES).map(|number| part("zombie", format!("z{number}-{round}")));
        (self.producers, self.answers) =
            (producers.chain(zombies).collect(), part("answer", format!("answers-{round}")));
    }

    fn worker(&self, slot: usize) -> Part {
        let (is_calm, url) = (slot >= HOT, self.url(slot));
        let queues = if is_calm { format!("default,{SLOW_QUEUE}") } else { "default".to_owned() };
        let drain = if is_calm { CALM_DRAIN } else { HOT_DRAIN };
        let concurrency = if is_calm { CALM_CONCURRENCY } else { HOT_CONCURRENCY };
        let args = [
            "worker",
            "--store",
            &url,
            "--namespace",
            NAMESPACE,
            "--accept-data-loss",
            "--log",
            "info,holdpoint_executor::queued=debug",
            "--lease",
            &format!("{}ms", LEASE.as_millis()),
            "--drain",
            &format!("{}ms", drain.as_millis()),
            "--queues",
            &queues,
            "--concurrency",
            &concurrency.to_string(),
        ];
        let args = args.map(str::to_owned).to_vec();
        let mut env = self.base.env.clone();
        env.push((ENV_SLOT.into(), slot_name(slot).into()));
        Part::new(args, env, self.log(&format!("worker-{slot}")))
    }

    fn log(&self, name: &str) -> PathBuf {
        self.folder.join("logs").join(format!("{name}.log"))
    }

    /// The URL of the store over a link.
    fn url(&self, link: usize) -> String {
        match (&self.store, self.links.get(link)) {
            (Place::Sqlite(path), _) => format!("sqlite:{}", path.display()),
            (Place::Redis(_), Some(link)) => link.url(),
            (Place::Redis(server), None) => server.url(),
        }
    }

    /// The URL of the store for the harness itself.
    pub(crate) fn own_url(&self) -> String {
        self.url(usize::MAX)
    }

    /// A link, when the store is at the end of one.
    pub(crate) fn link(&self, link: usize) -> Option<&Proxy> {
        self.links.get(link)
    }

    /// The links.
    pub(crate) fn links(&self) -> &[Proxy] {
        &self.links
    }

    /// The server, when there is one.
    pub(crate) fn server(&self) -> Option<&RedisServer> {
        match &self.store {
            Place::Redis(server) => Some(server),
            Place::Sqlite(_) => None,
        }
    }

    /// Makes each sync of the store's files take so long.
    pub(crate) fn slow_syncs(&mut self, each: Duration) -> Result<()> {
        Ok(self.shim.set_delay(each)?)
    }

    /// `kill -9` of whatever owns the store's files and, as after a power cut, the loss of what
    /// was not synced; then a restart.
    pub(crate) fn fell_store(&mut self, is_power_cut: bool) -> Result<()> {
        let code = if is_power_cut { fault::POWER } else { fault::STORE_KILL };
        self.say(code, Phase::Invoke, "store")?;
        if self.server().is_none() {
            self.kill_all()?;
        }
        if let Some(server) = self.server() {
            server.kill_9();
        }
        let mut taken = Vec::new();
        if is_power_cut {
            // Whoever still has a file open, such as a server's child that rewrites its log, would
            // write over what the cut brings back.
            slots::kill_owners(&self.folder.join("store"))?;
            taken = self.shim.cut(Tail::Lost)?;
        }
        if let Some(server) = self.server() {
            server.restart();
            compact(server);
        }
        let bytes: u64 = taken.iter().map(|taken| taken.cut + taken.restored).sum();
        let line = Line::now(Op::Fault, Phase::Ok, "store").code(code);
        self.recorder.write(line.detail(json!({ "bytes_lost": bytes })))?;
        self.ensure()
    }

    /// Kills every process that has the file open, all of them before any starts again.
    fn kill_all(&mut self) -> Result<()> {
        for slot in 0..self.workers.len() {
            self.kill_machine(slot)?;
        }
        for part in &mut self.producers {
            part.kill()?;
        }
        self.answers.kill()?;
        self.renew_load();
        Ok(())
    }

    /// `kill -9` of a worker with its supervisor. False: there was none.
    pub(crate) fn kill_machine(&mut self, slot: usize) -> Result<bool> {
        let Some(part) = self.workers.get_mut(slot) else { return Ok(false) };
        let at = Line::now(Op::Fault, Phase::Invoke, "").code(fault::MACHINE);
        let Some(worker) = part.kill_machine()? else { return Ok(false) };
        self.recorder.write(Line { id: worker.worker, ..at })?;
        Ok(true)
    }

    /// The worker process of a slot.
    pub(crate) fn worker_of(&self, slot: usize) -> Option<WorkerProcess> {
        self.workers.get(slot).and_then(Part::worker)
    }

    /// Writes a line about a fault.
    pub(crate) fn say(&self, code: &str, phase: Phase, target: &str) -> Result<()> {
        let line = Line::now(Op::Fault, phase, target).code(code);
        self.recorder.write(line).context("the history cannot be written")
    }

    /// Asks all workers to end, and waits for that. Answers how many had to be killed.
    pub(crate) fn stop_workers(&mut self, patience: Duration) -> usize {
        for part in &mut self.workers {
            part.terminate();
        }
        wait(patience, || !self.workers.iter_mut().any(Part::is_alive));
        self.workers.iter_mut().filter_map(|part| part.is_alive().then_some(())).count()
    }

    /// Stops who enqueues: no more runs come.
    pub(crate) fn stop_producers(&mut self, patience: Duration) {
        for part in &mut self.producers {
            part.terminate();
        }
        wait(patience, || !self.producers.iter_mut().any(Part::is_alive));
        self.producers.clear();
    }

    /// Freezes the server, or lets it go on.
    pub(crate) fn freeze_server(&self, signal: Signal) {
        match (self.server(), signal) {
            (Some(server), Signal::Stop) => server.pause(),
            (Some(server), _) => server.resume(),
            (None, _) => {}
        }
    }
}

/// The name of a worker's place and of its link, whatever process is there.
pub(crate) fn slot_name(slot: usize) -> String {
    format!("slot-{slot}")
}

/// Has the server rewrite its log when that has grown by half and more: each of its ends loads all
/// of it, and a rewrite of its own seldom lives to its end.
fn compact(server: &RedisServer) {
    const SMALL: u64 = 16 << 20;
    const PATIENCE: Duration = Duration::from_secs(60);
    let number = |name: &str| {
        let info = server.cli(&["INFO", "persistence"]);
        let value = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value.and_then(|value| value.trim().parse::<u64>().ok()).unwrap_or(0)
    };
    let base = number("aof_base_size");
    if number("aof_current_size") < base + base / 2 + SMALL {
        return;
    }
    server.cli(&["BGREWRITEAOF"]);
    wait(PATIENCE, || {
        number("aof_rewrite_in_progress") == 0 && number("aof_rewrite_scheduled") == 0
    });
}

/// Looks until it is so, at most for a while.
fn wait(patience: Duration, mut is_so: impl FnMut() -> bool) {
    const LOOK_EVERY: Duration = Duration::from_millis(5);
    let mut left = patience;
    while !is_so() && !left.is_zero() {
        std::thread::sleep(LOOK_EVERY);
        left = left.saturating_sub(LOOK_EVERY);
    }
}

fn redis(appendfsync: Appendfsync, files: &Path, shim: &Shim) -> RedisServer {
    let config = RedisServer::config().appendfsync(appendfsync);
    let config = config.line(format!("dir \"{}\"", files.display()));
    shim.env().into_iter().fold(config, |config, (name, value)| config.env(name, value)).start()
}
