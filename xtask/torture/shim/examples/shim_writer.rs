//! Enqueues runs until it is killed, many at once, and writes down what was acknowledged.
//!
//! `shim_writer STORE NAME HISTORY`, where STORE is `sqlite-full:PATH`, `sqlite-normal:PATH` or
//! the URL of a Redis.

use std::{path::Path, sync::Arc};

use anyhow::{Context as _, bail};
use holdpoint_graph::{GraphId, Namespace, QueueId, RequestId, RunId};
use holdpoint_storage::{IfBusy, NewRun, Store, StoreError, When, meaning_hash};
use holdpoint_storage_redis::{RedisConfig, RedisStore};
use holdpoint_storage_sqlite::{Location, SqliteConfig, SqliteStore, Synchronous};
use holdpoint_torture_check::{Line, Op, Phase, Recorder};

/// Enqueues at once.
const WIDTH: usize = 16;

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() -> anyhow::Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [place, name, history] = args.as_slice() else { bail!("STORE NAME HISTORY") };
    let store = open(place).await.context("cannot open the store")?;
    let recorder = Arc::new(Recorder::open(Path::new(history), name)?);
    let mut writers = tokio::task::JoinSet::new();
    for writer in 0..WIDTH {
        let (store, recorder) = (Arc::clone(&store), Arc::clone(&recorder));
        writers.spawn(write(store, recorder, format!("{name}-{writer}")));
    }
    while let Some(ended) = writers.join_next().await {
        ended??;
    }
    Ok(())
}

async fn open(place: &str) -> anyhow::Result<Arc<dyn Store>> {
    let namespace = Namespace::new("shim")?;
    let Some((synchronous, path)) = place
        .strip_prefix("sqlite-full:")
        .map(|path| (Synchronous::Full, path))
        .or_else(|| place.strip_prefix("sqlite-normal:").map(|path| (Synchronous::Normal, path)))
    else {
        let config = RedisConfig { accept_data_loss: true, ..RedisConfig::new(place, namespace) };
        return Ok(Arc::new(RedisStore::connect(config).await?));
    };
    let config = SqliteConfig::new(Location::File(path.into()), namespace);
    Ok(Arc::new(SqliteStore::open(SqliteConfig { synchronous, ..config }).await?))
}

/// Enqueues one run after the other, until the store refuses: then this writer has seen enough.
async fn write(store: Arc<dyn Store>, recorder: Arc<Recorder>, name: String) -> anyhow::Result<()> {
    for number in 0.. {
        let id = format!("{name}-{number}");
        recorder.write(Line::now(Op::Enqueue, Phase::Invoke, &id))?;
        let (phase, code) = match store.enqueue(&[new_run(&id)?], false).await {
            Ok(_) => (Phase::Ok, None),
            Err(error @ StoreError::UnknownOutcome { .. }) => (Phase::Unknown, Some(error)),
            Err(error) => (Phase::Fail, Some(error)),
        };
        let mut line = Line::now(Op::Enqueue, phase, &id);
        line.code = code.as_ref().map(|error| error.code().as_str().to_owned());
        recorder.write(line)?;
        if code.is_some() {
            break;
        }
    }
    Ok(())
}

fn new_run(id: &str) -> anyhow::Result<NewRun> {
    Ok(NewRun {
        run: RunId::new(id)?,
        request: RequestId::new(format!("new-{id}"))?,
        graph: GraphId::new("line")?,
        fingerprint: None,
        queue: QueueId::new("default")?,
        session: None,
        if_busy: IfBusy::Enqueue,
        payload: format!("payload of {id}").into_bytes(),
        payload_hash: meaning_hash(&id.into()),
        priority: 4,
        start: When::In(0),
        expires: None,
        deadline: None,
        key: None,
        tags: vec![],
        queue_depth_max: 1_000_000,
    })
}
