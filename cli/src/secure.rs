//! Whether a store may be used over a network as it is.

use std::net::IpAddr;

use holdpoint_graph::Code;

use crate::{
    failure::{Failure, Stop},
    place::without_secrets,
    settings::Settings,
};

/// A Redis on another host has a password, unless somebody says that it needs none.
pub(crate) fn insist(settings: &Settings) -> Result<(), Stop> {
    let url = &settings.store;
    if settings.insecure_store || is_near(url) || has_password(url) {
        return Ok(());
    }
    let shown = without_secrets(url);
    let text = format!("store \"{shown}\" is on another host and has no password");
    Err(Failure::of(Code::StoreInsecure, text)
        .at("store")
        .with_fix("redis://:PASSWORD@HOST has one; --insecure-store uses it as it is")
        .into())
}

/// The user and password of a URL, and its host with its port.
fn authority(url: &str) -> (&str, &str) {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    authority.rsplit_once('@').unwrap_or(("", authority))
}

fn has_password(url: &str) -> bool {
    authority(url).0.split_once(':').is_some_and(|(_, password)| !password.is_empty())
}

/// Whether nothing of the traffic leaves this host.
fn is_near(url: &str) -> bool {
    let (_, host) = authority(url);
    let host = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let is_loopback = |address: IpAddr| address.to_canonical().is_loopback();
    url.starts_with("redis+unix:")
        || host.eq_ignore_ascii_case("localhost")
        || host.parse().is_ok_and(is_loopback)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_near_or_needs_a_password() {
        for url in [
            "redis://localhost",
            "redis://LOCALHOST:1/0",
            "redis://127.8.0.1",
            "redis://[::1]:1",
            "redis://[::ffff:127.0.0.1]",
            "redis+unix:///run/redis.sock",
        ] {
            assert!(is_near(url), "{url}");
        }
        for url in [
            "redis://host",
            "redis://127.0.0.1.example",
            "redis://localhost:1@far",
            "redis://[::2]",
        ] {
            assert!(!is_near(url), "{url}");
        }
        for url in ["redis://:p@host", "redis://me:p@host/0", "redis://me:a@b@host"] {
            assert!(has_password(url), "{url}");
        }
        for url in ["redis://host", "redis://me@host", "redis://me:@host", "redis://host/a:b@c"] {
            assert!(!has_password(url), "{url}");
        }
    }
}
