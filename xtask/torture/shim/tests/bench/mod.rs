//! A store under the shim with writers that work on it, and the count of what it lost.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc, time::Duration};

use holdpoint_graph::Namespace;
use holdpoint_storage::{Finding, Level, Store};
use holdpoint_storage_redis::{RedisConfig, RedisStore};
use holdpoint_storage_sqlite::{Location, SqliteConfig, SqliteStore};
use holdpoint_testkit::{Appendfsync, Process, Program, RedisServer, Scratch, until};
use holdpoint_torture_check::{Dump, Extra, History, Op, Phase, Shim, Tail, check};

const SOON: Duration = Duration::from_secs(120);

/// A way to run a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    SqliteFull,
    SqliteNormal,
    RedisAlways,
    RedisEverysec,
    RedisNo,
}

/// What became of acknowledged runs.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Figures {
    pub(crate) acknowledged: usize,
    pub(crate) lost: usize,
}

pub(crate) struct Bench {
    scratch: Scratch,
    mode: Mode,
    writers: usize,
    round: usize,
    pub(crate) shim: Shim,
    server: Option<RedisServer>,
    processes: Vec<Process>,
    was_cut: bool,
    /// What had survived when it was last counted.
    survivors: BTreeSet<String>,
    pub(crate) kills: Figures,
    pub(crate) cuts: Figures,
}

impl Bench {
    /// An empty store with so many processes that write.
    pub(crate) fn new(mode: Mode, writers: usize) -> Self {
        let scratch = Scratch::new();
        let root = scratch.file("data");
        std::fs::create_dir(&root).expect("a new folder");
        let shim = Shim::new(&scratch.file("shim"), std::slice::from_ref(&root));
        let shim = shim.expect("the shim was built");
        let appendfsync = match mode {
            Mode::SqliteFull | Mode::SqliteNormal => None,
            Mode::RedisAlways => Some(Appendfsync::Always),
            Mode::RedisEverysec => Some(Appendfsync::Everysec),
            Mode::RedisNo => Some(Appendfsync::No),
        };
        let server = appendfsync.map(|appendfsync| {
            let config = RedisServer::config().appendfsync(appendfsync);
            let config = config.line(format!("dir \"{}\"", root.display()));
            let with =
                |config: holdpoint_testkit::RedisConfig, (name, value)| config.env(name, value);
            shim.env().into_iter().fold(config, with).start()
        });
        Self {
            scratch,
            mode,
            writers,
            round: 0,
            shim,
            server,
            processes: vec![],
            was_cut: false,
            survivors: BTreeSet::new(),
            kills: Figures::default(),
            cuts: Figures::default(),
        }
    }

    /// Starts the writers of a new round and waits for so many acknowledgements.
    pub(crate) fn write(&mut self, acks: usize) {
        self.round += 1;
        std::fs::create_dir(self.folder()).expect("a new folder");
        for writer in 0..self.writers {
            let mut program = Program::example("shim_writer")
                .arg(self.place())
                .arg(format!("r{}w{writer}", self.round))
                .arg(self.folder());
            if self.server.is_none() {
                let env = self.shim.env();
                program =
                    env.iter().fold(program, |program, (name, value)| program.env(name, value));
            }
            self.processes.push(program.spawn());
        }
        self.write_on(acks);
    }

    /// Waits for so many acknowledgements more.
    pub(crate) fn write_on(&mut self, acks: usize) {
        let goal = self.acknowledged() + acks;
        until("the acknowledgements", SOON, || (self.acknowledged() >= goal).then_some(()));
    }

    /// Writes until the server has begun a sync that takes long, and acknowledges meanwhile.
    pub(crate) fn write_until_a_sync_is_under_way(&mut self, acks: usize) {
        self.write(acks);
        let pending = || {
            let info =
                self.server.as_ref().expect("the mode has a server").cli(&["INFO", "persistence"]);
            info.lines().any(|line| line.trim() == "aof_pending_bio_fsync:1").then_some(())
        };
        until("a sync", SOON, pending);
        self.write_on(acks);
    }

    /// Rewrites the server's file, and waits until that has begun.
    pub(crate) fn rewrite(&self) {
        self.server.as_ref().expect("the mode has a server").cli(&["BGREWRITEAOF"]);
    }

    /// Waits until all writers have given up, because the store refuses.
    pub(crate) fn await_end_of_writers(&mut self) {
        for process in &mut self.processes {
            process.wait(SOON);
        }
    }

    /// Kills what has the store's files open.
    pub(crate) fn kill(&mut self) {
        if let Some(server) = &self.server {
            server.kill_9();
        }
        self.was_cut = false;
        // The writers of a server go too, so that none of them writes to the next one.
        for mut process in self.processes.drain(..) {
            process.kill_9();
        }
    }

    /// The same, and the power goes.
    pub(crate) fn cut(&mut self, tail: Tail) {
        self.kill();
        self.was_cut = true;
        self.shim.cut(tail).expect("the logs can be read");
    }

    /// Starts the store again and counts what it has lost of this round.
    pub(crate) fn judge(&mut self) {
        if let Some(server) = &self.server {
            server.restart();
        }
        let runtime = tokio::runtime::Runtime::new().expect("a runtime");
        let dump = runtime.block_on(async {
            let store = self.open().await;
            let dump = Dump::take(&*store).await.expect("the store can be read");
            // How this server syncs is what the test is about.
            let is_bad = |finding: &&Finding| {
                finding.level == Level::Bad && !finding.text.contains("appendfsync")
            };
            let bad: Vec<_> = dump.findings.iter().filter(is_bad).collect();
            assert!(bad.is_empty(), "{bad:?}");
            dump
        });
        let held: BTreeSet<String> = dump.runs.iter().map(|run| run.run.clone()).collect();
        if matches!(self.mode, Mode::SqliteFull | Mode::RedisAlways) {
            let lost_later: Vec<_> = self.survivors.difference(&held).collect();
            assert!(lost_later.is_empty(), "{lost_later:?} were lost later on");
        }
        self.survivors = held;
        let name = format!("r{}w", self.round);
        let mut ours = dump;
        ours.runs.retain(|run| run.run.starts_with(&name));
        let history = History::read(&self.folder()).expect("the history can be read");
        let found = check(&history, &ours, &Extra::default());
        let queue = &found.queue;
        assert_eq!((queue.unexpected.count, queue.duplicated.count), (0, 0), "{queue:?}");
        assert_eq!(found.stored.chain.count, 0, "{:?}", found.stored);
        let figures = if self.was_cut { &mut self.cuts } else { &mut self.kills };
        figures.acknowledged += queue.acknowledged as usize;
        figures.lost += queue.lost.count as usize;
        let how = if self.was_cut { "power cut" } else { "kill -9" };
        let (mode, lost, acknowledged) = (self.mode, queue.lost.count, queue.acknowledged);
        eprintln!("| {mode:?} | {how} | {lost} of {acknowledged} |");
    }

    async fn open(&self) -> Arc<dyn Store> {
        let namespace = Namespace::new("shim").expect("a good name");
        match &self.server {
            Some(server) => {
                let config = RedisConfig::new(server.url(), namespace);
                let config = RedisConfig { accept_data_loss: true, ..config };
                Arc::new(RedisStore::connect(config).await.expect("the server came back"))
            }
            None => {
                let config = SqliteConfig::new(Location::File(self.database()), namespace);
                Arc::new(SqliteStore::open(config).await.expect("the file can be opened"))
            }
        }
    }

    fn acknowledged(&self) -> usize {
        let history = History::read(&self.folder()).expect("the history can be read");
        let is_ack = |line: &&holdpoint_torture_check::Line| {
            line.op == Op::Enqueue && line.phase == Phase::Ok
        };
        history.lines.iter().filter(is_ack).count()
    }

    fn place(&self) -> String {
        match (&self.server, self.mode) {
            (Some(server), _) => server.url(),
            (None, Mode::SqliteNormal) => format!("sqlite-normal:{}", self.database().display()),
            (None, _) => format!("sqlite-full:{}", self.database().display()),
        }
    }

    fn database(&self) -> PathBuf {
        self.scratch.file("data").join("holdpoint.db")
    }

    fn folder(&self) -> PathBuf {
        self.scratch.file(&format!("history-{}", self.round))
    }
}
