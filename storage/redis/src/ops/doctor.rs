//! What `check` looks at: the server's settings, its clock, and whether each run is in the places
//! that its state names.

use holdpoint_storage::{
    Clock as _, Damage, Finding, Inspect as _, Level, StoreResult, SystemClock,
};

use crate::RedisStore;

/// Faults that one check lists.
const SHOWN_MAX: usize = 50;
/// A clock that differs by more is a finding.
const SKEW_MS_MAX: i64 = 2_000;

impl RedisStore {
    pub(super) async fn findings(&self) -> StoreResult<Vec<Finding>> {
        let mut findings = self.conn.facts().await?.findings;
        findings.push(self.skew().await?);
        let text = format!("the namespace is instance {}", self.conn.instance().await?);
        findings.push(Finding::new(Level::Ok, "instance", text, ""));
        let faults = self.find_faults().await?;
        let shown = faults.iter().take(SHOWN_MAX).map(finding);
        findings.extend(shown);
        if faults.len() > SHOWN_MAX {
            let text = format!("{} more faults are not listed", faults.len() - SHOWN_MAX);
            findings.push(Finding::new(Level::Bad, "conservation", text, "see the first ones"));
        }
        if faults.is_empty() {
            let text = "every run is in the places that its state names";
            findings.push(Finding::new(Level::Ok, "conservation", text, ""));
        }
        Ok(findings)
    }

    async fn skew(&self) -> StoreResult<Finding> {
        let skew = self.now_ms().await? - SystemClock.wall_ms();
        let text = format!("the store's clock and this host's are {} ms apart", skew.abs());
        Ok(if skew.abs() > SKEW_MS_MAX {
            Finding::new(Level::Warn, "clock", text, "run a time service on both hosts")
        } else {
            Finding::new(Level::Ok, "clock", text, "")
        })
    }
}

fn finding(fault: &Damage) -> Finding {
    let (level, fix) = match (fault.check.as_str(), fault.is_mendable()) {
        ("aside", _) => (Level::Warn, "save what is needed of it, then delete its keys"),
        (_, true) => (Level::Bad, "doctor --repair"),
        (_, false) => (Level::Bad, "look at the run, then cancel or redrive it"),
    };
    Finding::new(level, &fault.check, &fault.text, fix)
}
