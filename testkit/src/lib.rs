//! Tools for Holdpoint's own tests: real servers, real processes and what they leave behind.
//!
//! * [`RedisServer`]: a `redis-server` of the test's own, to be killed, frozen and restarted.
//! * [`Program`] and [`Process`]: examples and binaries as child processes that receive signals.
//! * [`Terminal`]: a program at a terminal, with somebody who presses keys and reads.
//! * [`Ledger`]: what the fixture nodes wrote down about each time they ran.
//! * [`Scratch`]: a folder that goes away with the test, and the store URLs inside it.
//! * [`Proxy`]: a relay in front of a server that holds, delays, drops or cuts.
//! * [`FaultyStore`]: a real store behind a plan of faults.
//! * [`CrashStore`]: a real store whose calls pass named points at which the process crashes.
//! * [`verified_journal`]: a run's journal, when it is whole.
//! * [`until`] and [`until_async`]: the one way to wait for something another process does.
//!
//! Nothing is shared between tests, so all of them may run at once.
//! What goes wrong here is a broken test, so these tools panic with the reason instead of
//! returning errors.
//! The crate is a dev-dependency; no program of ours links it.

mod between;
mod crash;
mod faulty;
mod find;
mod journal;
mod ledger;
mod lines;
mod process;
mod program;
mod proxy;
mod redis;
mod scratch;
mod signal;
mod terminal;
mod until;

pub use between::{Between, Call, Middle};
pub use crash::{CRASH_POINTS, Crash, CrashAction, CrashError, CrashStore};
pub use faulty::{Fault, Faults, FaultyStore, Plan};
pub use find::{binary_path, example_path, profile_folder};
pub use journal::verified_journal;
pub use ledger::{Ledger, LedgerEntry};
pub use process::{Finished, Process};
pub use program::Program;
pub use proxy::{Proxy, ProxyMode};
pub use redis::{Appendfsync, RedisConfig, RedisServer};
pub use scratch::Scratch;
pub use signal::Signal;
pub use terminal::{Terminal, pseudo_terminal};
pub use until::{until, until_async};
