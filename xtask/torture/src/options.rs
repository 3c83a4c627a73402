//! What the command line asks for, and how much harm goes with it.

use anyhow::{Result, bail};
use holdpoint_storage::Random;
use holdpoint_torture_check::Targets;

use crate::planted::Trial;

pub(crate) const USAGE: &str = "\
usage: cargo xtask torture [--ci] [--seconds N] [--seed S] [--store NAME]... [--plan] [--keep]
                           [--planted] [--bug N]...

  --ci         the run of the build server: both stores, many faults in a short time
  --seconds N  how long faults go on [default: 60; 1800 is the soak]
  --seed S     what happens when [default: a new one, printed]
  --store NAME redis-always, redis (everysec: what it may lose is counted) or sqlite
               [default: redis-always and sqlite]
  --plan       print the plan and end
  --planted    plant bugs, one after the other, and show which row of the report catches each;
               the program must be built with them, as the task does
  --bug N      only these of them; 0 is none, and must not be caught
  --keep       keep the folder with histories and logs; a run that fails keeps it in any case";

/// How long faults go on in a run of the build server.
const CI_SECONDS: u64 = 85;
/// How long they go on in the soak.
const SOAK_SECONDS: u64 = 1_800;

/// A kind of store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreKind {
    /// Redis that syncs about once a second: it may lose that much in a power cut.
    Redis,
    /// Redis that syncs before each reply.
    RedisAlways,
    /// A SQLite file that all processes share.
    Sqlite,
}

impl StoreKind {
    const ALL: [Self; 3] = [Self::Redis, Self::RedisAlways, Self::Sqlite];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::RedisAlways => "redis-always",
            Self::Sqlite => "sqlite",
        }
    }
}

/// What is asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) seconds: u64,
    pub(crate) seed: u64,
    pub(crate) stores: Vec<StoreKind>,
    pub(crate) is_ci: bool,
    pub(crate) only_plan: bool,
    pub(crate) keep: bool,
    /// Bugs are planted: these, or all.
    pub(crate) planted: Option<Vec<u8>>,
    /// The bug that is planted now.
    pub(crate) trial: Option<Trial>,
}

impl Options {
    /// Reads the command line.
    pub(crate) fn parse(args: &[String]) -> Result<Self> {
        let seed = u64::from(u32::from_le_bytes(Random.bytes()));
        let mut options = Self {
            seconds: 60,
            seed,
            stores: Vec::new(),
            is_ci: false,
            only_plan: false,
            keep: false,
            planted: None,
            trial: None,
        };
        let mut args = args.iter();
        while let Some(arg) = args.next() {
            let mut value =
                || args.next().ok_or_else(|| anyhow::anyhow!("{arg} needs a value\n{USAGE}"));
            match arg.as_str() {
                "--ci" => (options.is_ci, options.seconds) = (true, CI_SECONDS),
                "--seconds" => options.seconds = value()?.parse()?,
                "--seed" => options.seed = value()?.parse()?,
                "--store" => {
                    let name = value()?;
                    let kind = StoreKind::ALL.into_iter().find(|kind| kind.name() == name);
                    let Some(kind) = kind else { bail!("no store {name:?}\n{USAGE}") };
                    options.stores.push(kind);
                }
                "--plan" => options.only_plan = true,
                "--planted" => drop(options.planted.get_or_insert_default()),
                "--bug" => options.planted.get_or_insert_default().push(value()?.parse()?),
                "--keep" => options.keep = true,
                other => bail!("no option {other:?}\n{USAGE}"),
            }
        }
        if options.stores.is_empty() {
            options.stores = vec![StoreKind::RedisAlways, StoreKind::Sqlite];
        }
        if options.seconds < 10 {
            bail!("--seconds is {}, it must be 10 or more", options.seconds);
        }
        Ok(options)
    }

    /// The least that must happen: in a run of the build server what each push must show, else
    /// the soak's in proportion to the time. Bugs are planted elsewhere, and a file has no links.
    pub(crate) fn targets(&self, store: StoreKind) -> Targets {
        let (whole, of) = if self.is_ci {
            (Targets::push(), CI_SECONDS)
        } else {
            (Targets::soak(), SOAK_SECONDS)
        };
        let part = |count: u64| count * self.seconds / of;
        Targets {
            runs: part(whole.runs),
            worker_kills: part(whole.worker_kills),
            store_kills: part(whole.store_kills),
            power_cuts: part(whole.power_cuts),
            pauses: part(whole.pauses),
            cuts: if store == StoreKind::Sqlite { 0 } else { part(whole.cuts) },
            refused: part(whole.refused),
            planted: None,
        }
    }

    /// The command that does the same to one store again.
    pub(crate) fn replay(&self, store: StoreKind) -> String {
        let (seconds, seed, name) = (self.seconds, self.seed, store.name());
        let ci = if self.is_ci { " --ci" } else { "" };
        format!("cargo xtask torture{ci} --seconds {seconds} --seed {seed} --store {name}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Options> {
        let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Options::parse(&args)
    }

    #[test]
    fn the_replay_command_asks_for_the_same() {
        for line in ["--ci --seed 7", "--seconds 30 --seed 9 --store sqlite"] {
            let options = parse(line).unwrap();
            for store in options.stores.clone() {
                let replay = options.replay(store);
                let again = parse(replay.strip_prefix("cargo xtask torture").unwrap()).unwrap();
                assert_eq!(again, Options { stores: vec![store], ..options.clone() });
            }
        }
    }

    #[test]
    fn targets_grow_with_the_time() {
        let targets = |line, store| parse(line).unwrap().targets(store);
        assert_eq!(targets("--ci", StoreKind::RedisAlways), Targets::push());
        let soak = Targets { planted: None, ..Targets::soak() };
        assert_eq!(targets("--seconds 1800", StoreKind::RedisAlways), soak);
        assert_eq!(targets("--seconds 180", StoreKind::Sqlite).worker_kills, 1_000);
        assert_eq!(targets("--ci", StoreKind::Sqlite).cuts, 0);
    }

    #[test]
    fn what_is_no_option_is_refused() {
        assert!(parse("--seconds 1").is_err());
        assert!(parse("--store mysql").is_err());
        assert!(parse("--speed 3").is_err());
    }
}
