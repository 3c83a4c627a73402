//! Finds what in the namespace contradicts itself, and mends it.
//!
//! Every comparison is one script, so what it finds is true at that moment; every repair is one
//! script that first compares what it relies on, so it does nothing to a run that has moved on.

use std::collections::BTreeSet;

use holdpoint_storage::{Change, Damage, StoreError, StoreResult};

use crate::{
    RedisStore,
    codec::{self, Fields, Parts},
    keys::SHARED,
    script::Script,
};

/// Rows that one script compares.
const STEP: usize = 200;
/// Rows of an index that are compared; a larger namespace is checked in part.
const ROWS_MAX: usize = 1_000_000;
/// Faults that one check lists; the next one goes on behind what was mended.
const FAULTS_MAX: usize = 1_000;
/// Waiting runs that one script counts: it holds the server for some 200 ms.
const COUNTED_MAX: usize = 200_000;
/// Families of keys that belong to one run, session or tag, or are a list of questions.
const FAMILIES: [&str; 11] = ["r:", "p:", "j:", "z:", "t:", "ou:", "oo:", "od:", "h:", "s:", "x:"];

/// What a check has found so far.
#[derive(Debug, Default)]
struct Found {
    faults: Vec<Damage>,
    seen: BTreeSet<String>,
    /// The highest place in the order of enqueuing.
    order_max: u64,
}

impl Found {
    /// A run may be met in several places; its fault is one.
    fn add(&mut self, damage: Damage) {
        if self.faults.len() < FAULTS_MAX && self.seen.insert(damage.text.clone()) {
            self.faults.push(damage);
        }
    }
}

impl RedisStore {
    /// All that contradicts itself, a thousand faults at most. While a key that all share has the
    /// wrong type nothing else can be told.
    pub(super) async fn find_faults(&self) -> StoreResult<Vec<Damage>> {
        let mut found = Found::default();
        self.types(&mut found).await?;
        if !found.faults.is_empty() {
            return Ok(found.faults);
        }
        for index in SHARED.iter().filter(|(_, kind)| *kind == "zset").map(|(name, _)| *name) {
            if !["sx", "workers"].contains(&index) {
                self.rows(index, &mut found).await?;
            }
        }
        for lane in self.members("SMEMBERS", "l").await? {
            self.rows(&format!("q:{lane}"), &mut found).await?;
        }
        let mut sessions: BTreeSet<String> = self.zset("sx").await?.into_iter().collect();
        let mut workers: BTreeSet<String> = self.zset("workers").await?.into_iter().collect();
        let mut runs = BTreeSet::new();
        for (family, id) in self.scan().await? {
            match family {
                "t:" | "ou:" | "oo:" | "od:" => {
                    let name = format!("{family}{id}");
                    if !SHARED.iter().any(|(shared, _)| *shared == name) {
                        self.rows(&name, &mut found).await?;
                    }
                }
                "h:" => drop(workers.insert(id)),
                "s:" | "x:" => drop(sessions.insert(id)),
                _ => drop(runs.insert(id)),
            }
        }
        let runs: Vec<String> = runs.into_iter().collect();
        for ids in runs.chunks(STEP) {
            self.compare("run", ids, &mut found).await?;
        }
        let sessions: Vec<String> = sessions.into_iter().collect();
        for ids in sessions.chunks(STEP / 10) {
            self.compare("s:", ids, &mut found).await?;
        }
        for worker in workers {
            self.compare(&format!("h:{worker}"), &[], &mut found).await?;
        }
        self.order(&mut found).await?;
        // What else is wrong makes the counts wrong.
        if found.faults.iter().all(|fault| !fault.is_mendable()) {
            self.counts(&mut found).await?;
        }
        Ok(found.faults)
    }

    /// Keys of another type than the layout gives them.
    async fn types(&self, found: &mut Found) -> StoreResult<()> {
        for wrong in self.conn.wrong_types().await? {
            let text = format!("key {} is a {} and not a {}", wrong.name, wrong.is, wrong.should);
            let change = Change {
                kind: "n".to_owned(),
                before: Some(wrong.is),
                after: Some("none".to_owned()),
                item: String::new(),
                place: wrong.name.clone(),
            };
            found.add(Damage {
                check: "type".to_owned(),
                about: wrong.name,
                text,
                action: "rename it, and fill its place again".to_owned(),
                changes: vec![change],
            });
        }
        Ok(())
    }

    /// Compares all rows of a sorted set.
    async fn rows(&self, index: &str, found: &mut Found) -> StoreResult<()> {
        for first in (0..ROWS_MAX).step_by(STEP) {
            let range = [first.to_string(), STEP.to_string()];
            if self.compare(index, &range, found).await? < STEP {
                break;
            }
        }
        Ok(())
    }

    async fn compare(&self, place: &str, args: &[String], found: &mut Found) -> StoreResult<usize> {
        let mut call = self.conn.call_anyway(Script::Fsck).await?;
        call.arg(place);
        args.iter().for_each(|arg| {
            call.arg(arg);
        });
        let reply = match self.conn.ask(call).await {
            Err(StoreError::Corrupt { why, .. }) => {
                found.add(not_told(place, &why));
                return Ok(0);
            }
            reply => reply?,
        };
        let mut parts = Parts::of(reply, "a comparison")?;
        let rows = parts.number()?;
        let mut heads = parts.parts()?;
        // What a script says of a run that only it can read is of no use.
        let mut hidden = BTreeSet::new();
        while heads.left() > 0 {
            let mut head = heads.parts()?;
            let run = head.text()?;
            let fields = Fields::new(&run, head.pairs()?);
            let is_aside = !head.text()?.is_empty();
            match fields.head(0) {
                Ok(_) => found.order_max = found.order_max.max(fields.order()),
                Err(error) => {
                    found.add(unreadable(&run, &error, is_aside));
                    hidden.insert(run);
                }
            }
        }
        while parts.left() > 0 {
            let damage = damage(parts.parts()?)?;
            if !hidden.contains(&damage.about) {
                found.add(damage);
            }
        }
        Ok(rows)
    }

    /// Whether new runs go behind all that are there.
    async fn order(&self, found: &mut Found) -> StoreResult<()> {
        let mut command = redis::cmd("GET");
        command.arg(format!("{}n", self.conn.keys().prefix()));
        let reply = self.conn.command(&command).await?;
        let stored: Option<String> = redis::from_redis_value(reply).unwrap_or_default();
        let last = stored.as_deref().and_then(|text| text.parse::<u64>().ok()).unwrap_or(0);
        if last >= found.order_max {
            return Ok(());
        }
        let after = found.order_max.to_string();
        let text = format!("the order of enqueuing goes on behind {last}, there is {after}");
        let change = Change {
            kind: "k".to_owned(),
            place: "n".to_owned(),
            item: String::new(),
            before: stored,
            after: Some(after),
        };
        found.add(Damage {
            check: "count".to_owned(),
            about: "n".to_owned(),
            text,
            action: "go on behind the last".to_owned(),
            changes: vec![change],
        });
        Ok(())
    }

    async fn counts(&self, found: &mut Found) -> StoreResult<()> {
        let mut call = self.conn.call_anyway(Script::Depths).await?;
        call.arg("look").number(COUNTED_MAX);
        let reply = self.conn.ask(call).await?;
        if matches!(reply, redis::Value::Int(-1)) {
            return Ok(());
        }
        let mut parts = Parts::of(reply, "the counts")?;
        while parts.left() > 0 {
            let mut row = parts.parts()?;
            let (queue, before, after) = (row.text()?, row.text()?, row.text()?);
            let text = format!("queue {queue} counts {before} waiting runs, there are {after}");
            let change = Change {
                kind: "count".to_owned(),
                place: "c".to_owned(),
                item: queue.clone(),
                before: Some(before),
                after: Some(after),
            };
            found.add(Damage {
                check: "count".to_owned(),
                about: queue,
                text,
                action: "count again".to_owned(),
                changes: vec![change],
            });
        }
        Ok(())
    }

    /// Mends one fault. False: what the repair relies on has changed.
    pub(super) async fn mend(&self, damage: &Damage) -> StoreResult<bool> {
        if !damage.is_mendable() {
            return Ok(false);
        }
        let is_count = damage.changes.iter().any(|change| change.kind == "count");
        let mut call =
            self.conn.call_anyway(if is_count { Script::Depths } else { Script::Mend }).await?;
        if is_count {
            call.arg("mend").number(COUNTED_MAX).arg(&damage.about);
        } else {
            for change in &damage.changes {
                let text = |value: &Option<String>| value.clone().unwrap_or_default();
                call.arg(&change.kind).arg(&change.place).arg(&change.item);
                call.arg(text(&change.before)).arg(text(&change.after));
            }
        }
        let reply = self.conn.ask(call).await?;
        self.conn.forget_checks();
        Ok(codec::number(&reply, "the reply to a repair")? == 1)
    }

    async fn zset(&self, name: &str) -> StoreResult<Vec<String>> {
        self.members("ZRANGE", name).await
    }

    async fn members(&self, command: &str, name: &str) -> StoreResult<Vec<String>> {
        let mut command = redis::cmd(command);
        command.arg(format!("{}{name}", self.conn.keys().prefix()));
        if name != "l" {
            command.arg(0).arg(-1);
        }
        let reply = self.conn.command(&command).await?;
        Ok(redis::from_redis_value(reply).unwrap_or_default())
    }

    /// The keys of the families, by their family and id; none when the server's user may not scan.
    async fn scan(&self) -> StoreResult<Vec<(&'static str, String)>> {
        let prefix = self.conn.keys().prefix();
        let (mut found, mut cursor) = (Vec::new(), "0".to_owned());
        loop {
            let mut command = redis::cmd("SCAN");
            command.arg(&cursor).arg("MATCH").arg(format!("{prefix}*")).arg("COUNT").arg(1_000);
            let reply = match self.conn.command(&command).await {
                Err(StoreError::Unavailable { cause }) if cause.starts_with("NOPERM") => {
                    tracing::debug!(%cause, "checks the indexes only");
                    return Ok(found);
                }
                reply => reply?,
            };
            let mut parts = Parts::of(reply, "a scan")?;
            cursor = parts.text()?;
            let mut keys = parts.parts()?;
            while keys.left() > 0 {
                let Ok(key) = String::from_utf8(keys.bytes()?) else { continue };
                let name = key.strip_prefix(prefix).unwrap_or_default();
                let family = FAMILIES.into_iter().find(|family| name.starts_with(family));
                found.extend(family.map(|family| (family, name[family.len()..].to_owned())));
            }
            if cursor == "0" {
                return Ok(found);
            }
        }
    }
}

/// A place of which nothing can be told, because what it leads to has another type.
fn not_told(place: &str, why: &str) -> Damage {
    Damage {
        check: "type".to_owned(),
        about: place.to_owned(),
        text: format!("{place} cannot be compared: {why}"),
        action: String::new(),
        changes: Vec::new(),
    }
}

/// A head that scripts can read and this program cannot.
fn unreadable(run: &str, error: &StoreError, is_aside: bool) -> Damage {
    if is_aside {
        return Damage {
            check: "aside".to_owned(),
            about: run.to_owned(),
            text: format!("run {run} is set aside: {error}"),
            action: String::new(),
            changes: Vec::new(),
        };
    }
    let change = Change {
        kind: "A".to_owned(),
        place: String::new(),
        item: run.to_owned(),
        before: None,
        after: None,
    };
    Damage {
        check: "unreadable".to_owned(),
        about: run.to_owned(),
        text: error.to_string(),
        action: "set it aside".to_owned(),
        changes: vec![change],
    }
}

/// A fault as the script tells it. What is no text cannot be given back to the script, so a
/// person has to mend it.
fn damage(mut parts: Parts) -> StoreResult<Damage> {
    let mut is_text = true;
    let mut text = |parts: &mut Parts| -> StoreResult<String> {
        let bytes = parts.bytes()?;
        is_text &= std::str::from_utf8(&bytes).is_ok();
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    let (check, about) = (text(&mut parts)?, text(&mut parts)?);
    let (said, action) = (text(&mut parts)?, text(&mut parts)?);
    let (mut rows, mut changes) = (parts.parts()?, Vec::new());
    while rows.left() > 0 {
        let (kind, place, item) = (text(&mut rows)?, text(&mut rows)?, text(&mut rows)?);
        let mut value = || Ok::<_, StoreError>(Some(text(&mut rows)?).filter(|v| !v.is_empty()));
        let (before, after) = (value()?, value()?);
        changes.push(Change { kind, place, item, before, after });
    }
    let action = if is_text { action } else { String::new() };
    Ok(Damage { check, about, text: said, action, changes })
}
