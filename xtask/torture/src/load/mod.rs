//! The load: a process that enqueues and cancels, and one that answers, each until SIGTERM.
//!
//! It is one more user of the public API; all it does it also writes down.

mod answers;
mod calls;
mod cancels;
mod runs;
mod zombie;

pub(crate) use runs::ENV_POISON;

use std::{process::ExitCode, sync::Arc, time::Duration};

use anyhow::{Context as _, Result, bail};
use holdpoint_producer::Producer;
use holdpoint_torture_check::Recorder;
use tokio::signal::unix::{SignalKind, signal};

use crate::{places, recorder::ENV_HISTORY};

/// How long a caller waits for the store before it calls the outcome unknown.
const PATIENCE: Duration = Duration::from_secs(2);
/// The pause between two tries to open the store.
const OPEN_AGAIN: Duration = Duration::from_millis(50);

/// What a load process is given.
#[derive(Debug, Clone)]
pub(crate) struct Desk {
    /// The process's name, which begins the ids of what it makes.
    pub(crate) name: String,
    /// The seed.
    pub(crate) seed: u64,
    /// Runs per second.
    pub(crate) rate: u64,
    /// Its way to the store.
    pub(crate) producer: Producer,
    /// Its history.
    pub(crate) recorder: Arc<Recorder>,
}

/// Runs `load ROLE NAME URL SEED RATE`.
pub(crate) fn main(args: &[String]) -> Result<ExitCode> {
    let [role, name, url, seed, rate] = args else {
        bail!("load needs a role, a name, a store, a seed and a rate");
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let folder = std::env::var_os(ENV_HISTORY).context("there is no folder for the history")?;
        let recorder = Arc::new(Recorder::open(folder.as_ref(), name)?);
        let mut told = signal(SignalKind::terminate())?;
        let work = async {
            let (seed, rate) = (seed.parse()?, rate.parse()?);
            let producer = Producer::new(opened(url).await).with_patience(PATIENCE);
            let desk = Desk { name: name.clone(), seed, rate, producer, recorder };
            match role.as_str() {
                "produce" => runs::produce(desk).await,
                "answer" => answers::answer(desk).await,
                "zombie" => zombie::haunt(desk).await,
                other => bail!("no role {other:?}"),
            }
        };
        tokio::select! {
            ended = work => ended?,
            _ = told.recv() => {}
        }
        Ok(ExitCode::SUCCESS)
    })
}

/// The store, as soon as it can be had: it may be down when this process starts.
async fn opened(url: &str) -> Arc<dyn holdpoint_storage::Store> {
    loop {
        match places::open(url).await {
            Ok(store) => return store,
            Err(error) => eprintln!("waiting for the store: {error:#}"),
        }
        tokio::time::sleep(OPEN_AGAIN).await;
    }
}
