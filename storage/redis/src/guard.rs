//! What is looked at between calls, so that the scripts need not: whether the keys that all runs
//! share have their types, and how full the server's memory is.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use holdpoint_storage::{StoreError, StoreResult};
use tokio::time::Instant;

use crate::{checks, codec::Parts, conn::RedisConn, keys::SHARED, script::Script};

/// How often the memory is read while runs are enqueued, for each check of the settings. Between
/// two readings, a second apart, a producer at full speed stores less than what is left above the
/// limit of a server with 1 GiB.
const MEMORY_READINGS: u32 = 30;
/// The share of its memory, in percent, from which a server gets no partial results, and a doctor
/// warns.
pub(crate) const MEMORY_WARN: u64 = 70;
/// The share from which it takes no new runs: what is left is for those that are there.
const MEMORY_FULL: u64 = 80;

/// A key that has another type than the layout gives it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WrongType {
    /// Its name behind the prefix.
    pub(crate) name: String,
    /// Its type.
    pub(crate) is: String,
    /// The type by the layout.
    pub(crate) should: String,
}

/// How full a server is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Memory {
    /// What counts against the limit, in bytes.
    pub(crate) used: u64,
    /// The limit; 0: none.
    pub(crate) limit: u64,
}

impl Memory {
    /// From the texts of `INFO memory`.
    pub(crate) fn of(text: impl Fn(&str) -> u64) -> Self {
        let used = text("used_memory").saturating_sub(text("mem_not_counted_for_evict"));
        Self { used, limit: text("maxmemory") }
    }

    /// The used share in percent; 0 without a limit.
    pub(crate) fn percent(self) -> u64 {
        self.used.saturating_mul(100).checked_div(self.limit).unwrap_or(0)
    }
}

/// What was last seen.
#[derive(Debug, Default)]
pub(crate) struct Guard(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    types_at: Option<Instant>,
    damage: Option<StoreError>,
    memory_at: Option<Instant>,
    memory: Memory,
}

impl Guard {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_due(at: Option<Instant>, every: Duration) -> bool {
    at.is_none_or(|at| at.elapsed() >= every)
}

impl RedisConn {
    /// Fails while a key that all runs share has the wrong type: a script could stop half way.
    /// They are looked at every now and then, and not when the server cannot be asked.
    pub(crate) async fn is_whole(&self) -> StoreResult<()> {
        let is_due = {
            let mut seen = self.guard().seen();
            let is_due = is_due(seen.types_at, self.config().check_every);
            if is_due {
                seen.types_at = Some(Instant::now());
            }
            is_due
        };
        if is_due && let Ok(wrong) = self.wrong_types().await {
            let damage = wrong.first().map(|wrong| StoreError::Corrupt {
                what: format!("key {}", wrong.name),
                why: format!("it is a {} and not a {}", wrong.is, wrong.should),
            });
            self.guard().seen().damage = damage;
        }
        self.guard().seen().damage.clone().map_or(Ok(()), Err)
    }

    /// Looks at all for the first time.
    pub(crate) async fn look(&self) {
        // A store that is damaged is open for the doctor, and refuses each call by itself.
        drop(self.is_whole().await);
        self.memory().await;
    }

    /// The shared keys that have another type than the layout gives them.
    pub(crate) async fn wrong_types(&self) -> StoreResult<Vec<WrongType>> {
        let mut call = self.call_anyway(Script::Types).await?;
        for (name, kind) in SHARED {
            call.arg(name).arg(kind);
        }
        let mut parts = Parts::of(self.ask(call).await?, "types of keys")?;
        let mut wrong = Vec::with_capacity(parts.left());
        while parts.left() > 0 {
            let mut row = parts.parts()?;
            wrong.push(WrongType { name: row.text()?, is: row.text()?, should: row.text()? });
        }
        Ok(wrong)
    }

    /// Lets the next call look again.
    pub(crate) fn forget_checks(&self) {
        self.guard().seen().types_at = None;
    }

    /// How full the server is, as it was about a second ago at most.
    pub(crate) async fn memory(&self) -> Memory {
        let is_due = {
            let mut seen = self.guard().seen();
            let is_due = is_due(seen.memory_at, self.config().check_every / MEMORY_READINGS);
            if is_due {
                seen.memory_at = Some(Instant::now());
            }
            is_due
        };
        if is_due {
            let mut command = redis::cmd("INFO");
            command.arg("memory");
            if let Ok(reply) = self.command(&command).await {
                let info = checks::pairs(&reply);
                let number = |name: &str| info.get(name).and_then(|text| text.parse().ok());
                self.guard().seen().memory = Memory::of(|name| number(name).unwrap_or(0));
            }
        }
        self.guard().seen().memory
    }

    /// Refuses new runs while the server is nearly full.
    pub(crate) async fn has_room(&self) -> StoreResult<()> {
        let memory = self.memory().await;
        if memory.percent() < MEMORY_FULL {
            return Ok(());
        }
        let Memory { used, limit } = memory;
        let cause = format!(
            "the server uses {used} of {limit} bytes; new runs are taken below {MEMORY_FULL} %"
        );
        Err(StoreError::Full { cause })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_counts_what_the_limit_counts() {
        let of = |used, other, limit| {
            let text = |name: &str| match name {
                "used_memory" => used,
                "mem_not_counted_for_evict" => other,
                _ => limit,
            };
            Memory::of(text).percent()
        };
        assert_eq!(of(90, 10, 100), 80);
        assert_eq!(of(90, 10, 0), 0, "no limit is never reached");
        assert_eq!(of(250, 0, 100), 250);
    }
}
