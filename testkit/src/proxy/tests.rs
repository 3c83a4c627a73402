//! Each mode against a real Redis, with clients that speak by hand.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    time::Duration,
};

use crate::{Proxy, ProxyMode, RedisServer, until};

const LONG: Duration = Duration::from_secs(20);

/// A client that speaks to a Redis by hand.
struct Client(TcpStream);

impl Client {
    fn of(proxy: &Proxy) -> Self {
        let stream = TcpStream::connect(proxy.address()).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        Self(stream)
    }

    fn send(&mut self, line: &str) {
        // What the proxy closed cannot be written to; the reply tells.
        let _ = self.0.write_all(format!("{line}\r\n").as_bytes());
    }

    /// The next line; empty when the connection was closed.
    fn line(&mut self) -> String {
        let mut line = Vec::new();
        let mut byte = [0];
        while !line.ends_with(b"\r\n") {
            match self.0.read(&mut byte) {
                Ok(1) => line.push(byte[0]),
                Ok(_) => break,
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => break,
                Err(error) => panic!("{error}"),
            }
        }
        String::from_utf8(line).unwrap().trim().to_owned()
    }

    fn ask(&mut self, line: &str) -> String {
        self.send(line);
        self.line()
    }

    /// Whether nothing comes for a while.
    fn is_silent(&mut self) -> bool {
        self.0.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
        let read = self.0.read(&mut [0]);
        self.0.set_read_timeout(Some(LONG)).unwrap();
        matches!(read, Err(error) if matches!(
            error.kind(),
            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
        ))
    }
}

#[test]
fn everything_passes_to_either_kind_of_socket() {
    let server = RedisServer::start_tcp();
    let tcp = server.url().strip_prefix("redis://").unwrap().parse().unwrap();
    for proxy in [Proxy::to_redis(&server), Proxy::to_tcp(tcp), Proxy::to_unix(server.socket())] {
        let mut client = Client::of(&proxy);
        assert_eq!(client.ask("PING"), "+PONG");
        assert_eq!((proxy.connections(), proxy.accepted()), (1, 1));
        drop(client);
        until("the end", LONG, || (proxy.connections() == 0).then_some(()));
    }
}

#[test]
fn what_is_held_passes_when_the_hold_is_over() {
    let server = RedisServer::start();
    let proxy = Proxy::to_redis(&server);
    let mut old = Client::of(&proxy);
    assert_eq!(old.ask("PING"), "+PONG");
    proxy.set(ProxyMode::Hold);
    let mut new = Client::of(&proxy);
    old.send("INCR held");
    new.send("PING");
    assert!(old.is_silent() && new.is_silent());
    assert_eq!(server.cli(&["GET", "held"]), "", "nothing passed");
    proxy.set(ProxyMode::Pass);
    assert_eq!((old.line(), new.line()), (":1".to_owned(), "+PONG".to_owned()));
}

#[test]
fn a_dropped_reply_is_one_whose_request_was_done() {
    let server = RedisServer::start();
    let proxy = Proxy::to_redis(&server);
    let mut client = Client::of(&proxy);
    proxy.set(ProxyMode::DropReplies);
    assert_eq!(client.ask("INCR done"), "", "closed without a reply");
    assert_eq!(server.cli(&["GET", "done"]), "1");
}

#[test]
fn a_delay_delays() {
    let server = RedisServer::start();
    let proxy = Proxy::to_redis(&server);
    let mut client = Client::of(&proxy);
    proxy.set(ProxyMode::Delay(Duration::from_millis(300)));
    client.send("PING");
    assert!(client.is_silent());
    assert_eq!(client.line(), "+PONG");
}

#[test]
fn who_is_refused_or_cut_is_closed() {
    let server = RedisServer::start();
    let proxy = Proxy::to_redis(&server);
    let mut client = Client::of(&proxy);
    assert_eq!(client.ask("PING"), "+PONG");
    assert_eq!(proxy.cut(), 1);
    assert_eq!(client.ask("PING"), "");
    let mut client = Client::of(&proxy);
    assert_eq!(client.ask("PING"), "+PONG", "new ones are not cut");
    proxy.set(ProxyMode::Refuse);
    assert_eq!(client.ask("PING"), "");
    assert_eq!(Client::of(&proxy).ask("PING"), "");
    until("the end", LONG, || (proxy.connections() == 0).then_some(()));
}

#[test]
fn a_mode_can_be_for_one_name_only() {
    let server = RedisServer::start();
    let proxy = Proxy::to_redis(&server);
    let [mut claims, mut beats] = ["claims", "beats"].map(|name| {
        let mut client = Client::of(&proxy);
        assert_eq!(client.ask(&format!("CLIENT SETNAME {name}")), "+OK");
        client
    });
    assert_eq!(proxy.connections_named("claims"), 1);
    proxy.set_named("claims", ProxyMode::Hold);
    claims.send("PING");
    assert_eq!(beats.ask("PING"), "+PONG");
    assert!(claims.is_silent());
    let mut another = Client::of(&proxy);
    another.send("CLIENT SETNAME claims");
    assert!(another.is_silent(), "new ones of that name too");
    proxy.set_named("claims", ProxyMode::Pass);
    assert_eq!((claims.line(), another.line()), ("+PONG".to_owned(), "+OK".to_owned()));
    assert_eq!(proxy.cut_named("claims"), 2);
    assert_eq!((claims.line(), beats.ask("PING")), (String::new(), "+PONG".to_owned()));
}

#[test]
fn a_server_may_come_after_its_proxy() {
    let server = RedisServer::start();
    let proxy = Proxy::to_redis(&server);
    server.kill_9();
    assert_eq!(Client::of(&proxy).ask("PING"), "");
    server.restart();
    assert_eq!(Client::of(&proxy).ask("PING"), "+PONG");
}

#[test]
fn what_is_forgotten_stays_silent_and_new_ones_pass() {
    let server = RedisServer::start();
    let proxy = Proxy::to_redis(&server);
    let mut old = Client::of(&proxy);
    assert_eq!(old.ask("PING"), "+PONG");
    assert_eq!(proxy.forget(), 1);
    old.send("PING");
    assert_eq!(Client::of(&proxy).ask("PING"), "+PONG");
    proxy.set(ProxyMode::Pass);
    assert!(old.is_silent());
}
