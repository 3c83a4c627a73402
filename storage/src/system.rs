//! The only place that asks the host for time and chance.
//!
//! Everything else takes a [`Clock`] or a [`Random`], so that tests can hold both still.

use std::{fmt, sync::Arc, time::Instant};

use holdpoint_graph::{RequestId, RunId, WorkerId, fingerprint::base32};

/// Time: the host's wall clock for an embedded store, and a monotonic one for durations.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Milliseconds since 1970. Only an embedded store may ask: a server's store has its own.
    fn wall_ms(&self) -> i64;
    /// Microseconds since 1970.
    fn wall_us(&self) -> i64;
    /// A time that never goes back; measures durations and local deadlines.
    fn monotonic(&self) -> Instant;
}

/// The host's clocks.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

#[expect(clippy::disallowed_methods, reason = "this file is the one that may ask the host")]
impl Clock for SystemClock {
    fn wall_ms(&self) -> i64 {
        self.wall_us() / 1_000
    }
    fn wall_us(&self) -> i64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |since| i64::try_from(since.as_micros()).unwrap_or(i64::MAX))
    }
    fn monotonic(&self) -> Instant {
        Instant::now()
    }
}

/// A shared clock.
pub type SharedClock = Arc<dyn Clock>;

/// Chance, from the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct Random;

#[expect(clippy::disallowed_methods, reason = "this file is the one that may ask the host")]
impl Random {
    /// `N` random bytes.
    ///
    /// # Panics
    /// When the operating system has no randomness to give; nothing can be fenced then.
    #[must_use]
    pub fn bytes<const N: usize>(self) -> [u8; N] {
        let mut bytes = [0; N];
        getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
        bytes
    }

    /// A number from 0 to 1.
    #[must_use]
    pub fn unit(self) -> f64 {
        f64::from(u32::from_le_bytes(self.bytes())) / f64::from(u32::MAX)
    }

    /// 130 random bits as 26 characters that every id may hold.
    #[must_use]
    pub fn token(self) -> String {
        base32(&self.bytes::<17>(), 26)
    }

    /// A nonce for a claim.
    #[must_use]
    pub fn nonce(self) -> String {
        self.token()
    }

    /// A run id that sorts by its time: 10 characters of `now_ms`, 16 of chance.
    ///
    /// # Panics
    /// Never: the characters are those of an id.
    #[must_use]
    pub fn run_id(self, now_ms: i64) -> RunId {
        let time = (now_ms as u64) << 16;
        let text =
            format!("{}{}", base32(&time.to_be_bytes(), 10), base32(&self.bytes::<10>(), 16));
        RunId::new(text).expect("base 32 is within the alphabet of ids")
    }

    /// A request id.
    ///
    /// # Panics
    /// Never: the characters are those of an id.
    #[must_use]
    pub fn request_id(self) -> RequestId {
        RequestId::new(self.token()).expect("base 32 is within the alphabet of ids")
    }

    /// A worker id: host, process, chance; new with every process.
    ///
    /// # Panics
    /// Never: what is no id character is left out.
    #[must_use]
    pub fn worker_id(self, host: &str, process: u32) -> WorkerId {
        let host: String = host.chars().filter(char::is_ascii_alphanumeric).take(24).collect();
        let text = format!("w{host}-{process}-{}", base32(&self.bytes::<8>(), 12));
        WorkerId::new(text).expect("the characters are within the alphabet of ids")
    }
}
