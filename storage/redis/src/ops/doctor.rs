//! What `check` looks at: the server's settings, its clock, and whether each run is in the one
//! place that its state names.

use holdpoint_storage::{Clock as _, Finding, Inspect as _, Level, StoreResult, SystemClock};

use crate::{RedisStore, codec::Parts, script::Script};

/// Rows that one script compares.
const STEP: u64 = 200;
/// Rows of an index that one check compares; a larger namespace is checked in part.
const ROWS_MAX: u64 = 100_000;
/// Faults that one check lists.
const FAULTS_MAX: usize = 50;
/// A clock that differs by more is a finding.
const SKEW_MS_MAX: i64 = 2_000;
const INDEXES: [&str; 12] =
    ["ix", "due", "wak", "prk", "lse", "fin", "fin.l", "can", "can.l", "dead", "dead.l", "bad"];

impl RedisStore {
    pub(super) async fn findings(&self) -> StoreResult<Vec<Finding>> {
        let mut findings = self.conn.facts().await?.findings;
        findings.push(self.skew().await?);
        let before = findings.len();
        let mut indexes: Vec<String> = INDEXES.iter().map(|&name| name.to_owned()).collect();
        let stats = self.stats().await?;
        indexes.extend(stats.lanes.iter().map(|row| format!("q:{}", super::lane_text(&row.lane))));
        for index in &indexes {
            self.compare(index, &mut findings).await?;
        }
        if findings.len() == before {
            let text = "every run is in the one place that its state names";
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

    async fn compare(&self, index: &str, findings: &mut Vec<Finding>) -> StoreResult<()> {
        let mut first = 0;
        while first < ROWS_MAX {
            let mut call = self.conn.call(Script::Fsck).await?;
            call.arg(index).number(first).number(STEP);
            let mut parts = Parts::of(self.conn.ask(call).await?, "a comparison")?;
            let rows: u64 = parts.number()?;
            while parts.left() > 0 {
                let mut fault = parts.parts()?;
                let text = format!("run {} {}", fault.text()?, fault.text()?);
                let fix = "look at the run, then cancel or redrive it";
                if findings.len() < FAULTS_MAX {
                    findings.push(Finding::new(Level::Bad, "orphans", text, fix));
                }
            }
            if rows < STEP {
                break;
            }
            first += STEP;
        }
        Ok(())
    }
}
