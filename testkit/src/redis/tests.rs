//! The server's promises to tests, on the real thing.

use std::net::TcpStream;

use super::*;
use crate::until;

#[test]
fn starts_durable_and_answers() {
    let server = RedisServer::start();
    assert_eq!(server.cli(&["PING"]), "PONG");
    let setting = |name| server.cli(&["CONFIG", "GET", name]);
    assert_eq!(setting("appendfsync"), "appendfsync\nalways");
    assert_eq!(setting("maxmemory-policy"), "maxmemory-policy\nnoeviction");
    assert_eq!(setting("save"), "save");
    assert!(server.url().starts_with("redis+unix:///"), "{}", server.url());
}

#[test]
fn settings_and_lines_reach_the_server() {
    let config = RedisServer::config().appendfsync(Appendfsync::Everysec);
    let server = config.line("maxmemory 50mb").line("maxmemory-policy allkeys-lru").start();
    let setting = |name| server.cli(&["CONFIG", "GET", name]);
    assert_eq!(setting("appendfsync"), "appendfsync\neverysec");
    assert_eq!(setting("maxmemory"), "maxmemory\n52428800");
    assert_eq!(setting("maxmemory-policy"), "maxmemory-policy\nallkeys-lru");
}

#[test]
fn keeps_its_data_over_a_kill_and_a_restart() {
    let server = RedisServer::start();
    let first = server.pid();
    server.cli(&["SET", "key", "value"]);
    server.kill_9();
    server.restart();
    assert_ne!(server.pid(), first);
    assert_eq!(server.cli(&["GET", "key"]), "value");
}

#[test]
fn restart_kills_a_server_that_still_runs() {
    let server = RedisServer::start();
    server.cli(&["RPUSH", "list", "a", "b"]);
    server.restart();
    assert_eq!(server.cli(&["LLEN", "list"]), "2");
}

#[test]
fn two_servers_share_nothing() {
    let (one, two) = (RedisServer::start(), RedisServer::start());
    one.cli(&["SET", "key", "value"]);
    assert_eq!(two.cli(&["DBSIZE"]), "0");
}

#[test]
fn listens_on_a_port_when_asked() {
    let server = RedisServer::start_tcp();
    let url = server.url();
    let address = url.strip_prefix("redis://").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(b"PING\r\n").unwrap();
    let mut answer = [0; 5];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"+PONG");
    server.restart();
    assert_eq!(server.url(), url);
}

#[test]
fn a_paused_server_is_silent_until_it_resumes() {
    let server = RedisServer::start();
    let stat = format!("/proc/{}/stat", server.pid());
    server.pause();
    let is_stopped = || std::fs::read_to_string(&stat).unwrap().contains(") T ");
    until("the stop", Duration::from_secs(10), || is_stopped().then_some(()));
    server.resume();
    assert_eq!(server.cli(&["PING"]), "PONG");
}

#[test]
fn an_error_reply_is_a_panic_with_the_reply() {
    let server = RedisServer::start();
    let call = std::panic::AssertUnwindSafe(|| server.cli(&["LPUSH", "key"]));
    let panic = std::panic::catch_unwind(call).unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(text.contains("wrong number of arguments"), "{text}");
}

#[test]
fn a_server_that_cannot_start_says_why() {
    let config = RedisServer::config().line("no-such-setting yes");
    let panic = std::panic::catch_unwind(|| config.start()).unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(text.contains("did not start"), "{text}");
    assert!(text.contains("no-such-setting"), "{text}");
}

#[test]
fn is_gone_after_drop() {
    let server = RedisServer::start();
    let (pid, folder) = (server.pid(), server.folder());
    drop(server);
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    assert!(!folder.exists());
}
