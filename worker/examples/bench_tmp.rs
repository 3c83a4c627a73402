//! temporary
use holdpoint_graph::*;
use holdpoint_storage::*;
use holdpoint_worker::*;
use std::{sync::Arc, time::Duration};
fn new_run(graph: &str, run: &str) -> NewRun {
    NewRun {
        run: RunId::new(run).unwrap(),
        request: Random.request_id(),
        graph: GraphId::new(graph).unwrap(),
        fingerprint: None,
        queue: QueueId::new("default").unwrap(),
        session: None,
        if_busy: IfBusy::Enqueue,
        payload: RunPayload::new(State::new()).encode(),
        payload_hash: meaning_hash(&serde_json::json!(run)),
        priority: 4,
        start: When::In(0),
        expires: None,
        deadline: None,
        key: None,
        tags: vec![],
        queue_depth_max: 1_000_000,
    }
}
#[tokio::main]
async fn main() {
    let ns = Namespace::new("bench").unwrap();
    for kind in ["redis", "sqlite"] {
        for concurrency in [1usize, 10, 100] {
            for nodes in [1, 3] {
                let server = holdpoint_testkit::RedisServer::config()
                    .appendfsync(holdpoint_testkit::Appendfsync::Everysec)
                    .start();
                let dir = holdpoint_testkit::Scratch::new();
                let url = server.url();
                let (ns2, file) = (ns.clone(), dir.file("db"));
                let open = move || {
                    let (ns, url, file) = (ns2.clone(), url.clone(), file.clone());
                    async move {
                        let store: Arc<dyn Store> = if kind == "redis" {
                            let mut c = holdpoint_storage_redis::RedisConfig::new(url, ns);
                            c.accept_data_loss = true;
                            Arc::new(holdpoint_storage_redis::RedisStore::connect(c).await.unwrap())
                        } else {
                            Arc::new(
                                holdpoint_storage_sqlite::SqliteStore::open(
                                    holdpoint_storage_sqlite::SqliteConfig::new(
                                        holdpoint_storage_sqlite::Location::File(file),
                                        ns,
                                    ),
                                )
                                .await
                                .unwrap(),
                            )
                        };
                        store
                    }
                };
                let store = open().await;
                let count = if concurrency == 1 { 2_000 } else { 10_000 };
                for chunk in (0..count).collect::<Vec<_>>().chunks(100) {
                    let items: Vec<_> =
                        chunk.iter().map(|n| new_run("g", &format!("r{n}"))).collect();
                    store.enqueue(&items, false).await.unwrap();
                }
                let names = ["a", "b", "c"];
                let mut g = StateGraph::new("g").set_entry_point("a");
                for n in &names[..nodes] {
                    g = g.add_node(*n, |_: NodeContext, _: State| async {
                        Ok::<_, NodeError>(Update::new())
                    });
                }
                for p in names[..nodes].windows(2) {
                    g = g.add_edge(p[0], p[1]);
                }
                let g = g.set_finish_point(names[nodes - 1]).compile().unwrap();
                let config =
                    WorkerConfig { concurrency, exit_when_idle: true, ..WorkerConfig::default() };
                let open2 = open.clone();
                let shared = Arc::clone(&store);
                let worker = Worker::new(store, vec![g], config).unwrap().with_upkeep_store(
                    Arc::new(move || {
                        let open = open2.clone();
                        let s = Arc::clone(&shared);
                        Box::pin(async move { Ok(if kind == "redis" { open().await } else { s }) })
                    }),
                );
                let t = SystemClock.monotonic();
                let end = worker.run(Shutdown::new()).await;
                let took = SystemClock.monotonic() - t - Duration::from_millis(0);
                println!(
                    "{kind} c={concurrency} nodes={nodes}: {:.0} runs/s ({took:?}) {end:?}",
                    count as f64 / took.as_secs_f64()
                );
            }
        }
    }
}
