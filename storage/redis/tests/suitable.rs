//! Which servers are used: what is refused, and what is used although it tells little of itself.
#![expect(clippy::unwrap_used, reason = "a failed call fails the test")]

use holdpoint_graph::{Code, Namespace};
use holdpoint_storage::{Inspect as _, Level};
use holdpoint_storage_redis::{RedisConfig, RedisStore};
use holdpoint_testkit::RedisServer;

fn config(url: String) -> RedisConfig {
    RedisConfig::new(url, Namespace::new("shop").unwrap())
}

/// Of a cluster one node would answer some calls and refuse others.
#[tokio::test]
async fn a_node_of_a_cluster_is_refused() {
    let server = RedisServer::config().line("cluster-enabled yes").tcp().start();
    let error = RedisStore::connect(config(server.url())).await.unwrap_err();
    assert_eq!(error.code(), Code::StoreUnsupported);
    assert!(error.to_string().contains("cluster"), "{error}");
    assert_eq!(server.cli(&["DBSIZE"]), "0", "nothing was written");
}

/// Providers forbid CONFIG, and a store's user may name no connection: both are lived with, and
/// the first is said.
#[tokio::test]
async fn a_server_that_hides_its_settings_is_used_and_said_to_be_unverified() {
    let server = RedisServer::start();
    server.cli(&[
        "ACL",
        "SETUSER",
        "few",
        "on",
        ">secret",
        "~hp:*",
        "&hp:*",
        "+@all",
        "-config",
        "-client|setname",
    ]);
    let url = format!("redis+unix://{}?user=few&pass=secret", server.socket().display());
    let store = RedisStore::connect(config(url)).await.unwrap();
    let findings = store.check().await.unwrap();
    let said = findings.iter().find(|found| found.text.contains("cannot be read"));
    assert_eq!(said.map(|found| found.level), Some(Level::Warn), "{findings:?}");
    assert!(findings.iter().all(|found| found.level != Level::Bad), "{findings:?}");
}
