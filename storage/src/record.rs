//! The stored form of an event and of a snapshot, and the hash that chains them.
//!
//! A record is `version, epoch, time, hash, JSON`. The hash covers the hash before it, the
//! namespace, the run, the number and everything in the record: a record that was altered, cut,
//! moved to another place or copied from another run does not verify, and neither does any
//! journal with one lost or doubled. Journals are decoded only through [`Chain`].
//!
//! A record of the next version was written by a newer program and is left to one; whatever else
//! is not understood is damage.

use holdpoint_graph::{Code, Event, Namespace, Progress, Refusal, RunId, fingerprint::base32};
use serde::{Deserialize, Serialize};

use crate::{ChainHash, StoreError};

const VERSION: u8 = 1;
/// What a newer program writes: a rollout mixes two neighbours. No single bit turns one number
/// into the other.
const NEXT_VERSION: u8 = VERSION + 1;
const HASH_BYTES: usize = 16;
const HEADER_BYTES: usize = 1 + 8 + 8 + HASH_BYTES;

/// An event with its number, time and owner.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Its number.
    pub seq: u64,
    /// When, in ms since 1970 by the store's clock.
    pub at_ms: i64,
    /// The epoch of the owner that wrote it; 0 when it was no owner.
    pub epoch: u64,
    /// The event.
    pub event: Event,
}

/// A place in one run's journal from which records are encoded or verified, one after another.
#[derive(Debug, Clone)]
pub struct Chain {
    key: [u8; 32],
    run: RunId,
    seq: u64,
    hash: [u8; HASH_BYTES],
}

impl Chain {
    /// The beginning of a run's journal.
    #[must_use]
    pub fn start(namespace: &Namespace, run: &RunId) -> Self {
        let key = blake3::derive_key("holdpoint journal v1", namespace.as_str().as_bytes());
        Self { key, run: run.clone(), seq: 0, hash: [0; HASH_BYTES] }
    }

    /// A later place, as a head or a snapshot names it.
    ///
    /// # Errors
    /// When `hash` is no hash.
    pub fn at(
        namespace: &Namespace,
        run: &RunId,
        seq: u64,
        hash: &ChainHash,
    ) -> Result<Self, StoreError> {
        let mut chain = Self::start(namespace, run);
        if seq > 0 || !hash.0.is_empty() {
            chain.hash = from_hex(&hash.0)
                .ok_or_else(|| corrupt(run, format!("its chain hash {:?} is none", hash.0)))?;
        }
        chain.seq = seq;
        Ok(chain)
    }

    /// The number of the next record.
    #[must_use]
    pub const fn seq(&self) -> u64 {
        self.seq
    }

    /// The hash of the journal so far.
    #[must_use]
    pub fn hash(&self) -> ChainHash {
        if self.seq == 0 {
            return ChainHash::default();
        }
        ChainHash(to_hex(&self.hash))
    }

    /// Encodes the next event.
    ///
    /// # Panics
    /// Never: an event always has a text.
    pub fn encode(&mut self, at_ms: i64, epoch: u64, event: &Event) -> Vec<u8> {
        let mut record = Vec::with_capacity(256);
        record.push(VERSION);
        record.extend(epoch.to_be_bytes());
        record.extend(at_ms.to_be_bytes());
        record.extend([0; HASH_BYTES]);
        serde_json::to_writer(&mut record, event).expect("an event always has a text");
        let hash = self.next_hash(&record);
        record[HEADER_BYTES - HASH_BYTES..HEADER_BYTES].copy_from_slice(&hash);
        self.hash = hash;
        self.seq += 1;
        record
    }

    /// Verifies and decodes the next record.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] when it is not the record that belongs here, `E_SCHEMA_NEWER` when a
    /// newer program wrote it.
    pub fn decode(&mut self, record: &[u8]) -> Result<Record, StoreError> {
        let bad = |why: String| corrupt(&self.run, format!("event {}: {why}", self.seq));
        let header = record.get(..HEADER_BYTES).ok_or_else(|| bad("is cut short".to_owned()))?;
        let [version, rest @ ..] = header else { return Err(bad("is empty".to_owned())) };
        check_version(&self.run, &format!("event {}", self.seq), *version)?;
        let hash = self.next_hash(record);
        if rest.get(16..) != Some(&hash[..]) {
            return Err(bad("its hash does not verify".to_owned()));
        }
        let number = |at: usize| {
            let bytes = rest.get(at..at + 8).and_then(|b| b.try_into().ok()).unwrap_or_default();
            u64::from_be_bytes(bytes)
        };
        let body = record.get(HEADER_BYTES..).unwrap_or_default();
        let event = serde_json::from_slice(body).map_err(|fault| bad(fault.to_string()))?;
        let decoded = Record { seq: self.seq, epoch: number(0), at_ms: number(8) as i64, event };
        self.hash = hash;
        self.seq += 1;
        Ok(decoded)
    }

    fn next_hash(&self, record: &[u8]) -> [u8; HASH_BYTES] {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&self.hash);
        hasher.update(&self.seq.to_be_bytes());
        hasher.update(&(self.run.as_str().len() as u64).to_be_bytes());
        hasher.update(self.run.as_str().as_bytes());
        hasher.update(record.get(..HEADER_BYTES - HASH_BYTES).unwrap_or_default());
        hasher.update(record.get(HEADER_BYTES..).unwrap_or_default());
        first_bytes(&hasher.finalize())
    }

    /// Encodes a snapshot of the progress after the last record.
    ///
    /// # Panics
    /// Never: progress always has a text.
    #[must_use]
    pub fn encode_snapshot(&self, progress: &Progress) -> Vec<u8> {
        let body = SnapshotBody { seq: self.seq, hash: self.hash().0, progress };
        let text = serde_json::to_vec(&body).expect("progress always has a text");
        let mut record = vec![VERSION];
        record.extend(self.snapshot_mac(&text));
        record.extend(text);
        record
    }

    fn snapshot_mac(&self, text: &[u8]) -> [u8; HASH_BYTES] {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(b"snapshot");
        hasher.update(self.run.as_str().as_bytes());
        hasher.update(text);
        first_bytes(&hasher.finalize())
    }

    /// Verifies and decodes a snapshot; the chain goes on behind it.
    ///
    /// # Errors
    /// As [`Chain::decode`].
    pub fn decode_snapshot(
        namespace: &Namespace,
        run: &RunId,
        record: &[u8],
    ) -> Result<(Self, Progress), StoreError> {
        let bad = |why: String| corrupt(run, format!("snapshot: {why}"));
        let start = Self::start(namespace, run);
        let [version, rest @ ..] = record else { return Err(bad("is empty".to_owned())) };
        check_version(run, "snapshot", *version)?;
        let text = rest.get(HASH_BYTES..).ok_or_else(|| bad("is cut short".to_owned()))?;
        if rest.get(..HASH_BYTES) != Some(&start.snapshot_mac(text)[..]) {
            return Err(bad("its hash does not verify".to_owned()));
        }
        let body: OwnedSnapshotBody =
            serde_json::from_slice(text).map_err(|fault| bad(fault.to_string()))?;
        Ok((Self::at(namespace, run, body.seq, &ChainHash(body.hash))?, body.progress))
    }
}

#[derive(Serialize)]
struct SnapshotBody<'a> {
    seq: u64,
    hash: String,
    progress: &'a Progress,
}

#[derive(Deserialize)]
struct OwnedSnapshotBody {
    seq: u64,
    hash: String,
    progress: Progress,
}

fn check_version(run: &RunId, what: &str, version: u8) -> Result<(), StoreError> {
    let why = format!("has version {version}, this program reads {VERSION}");
    match version {
        VERSION => Ok(()),
        NEXT_VERSION => {
            let why = format!("of run {run} {why}: use a newer one");
            Err(Refusal::new(Code::SchemaNewer, what, why).into())
        }
        _ => Err(corrupt(run, format!("{what}: {why}"))),
    }
}

fn corrupt(run: &RunId, why: String) -> StoreError {
    StoreError::Corrupt { what: format!("run {run}"), why }
}

fn first_bytes(hash: &blake3::Hash) -> [u8; HASH_BYTES] {
    let mut bytes = [0; HASH_BYTES];
    bytes.copy_from_slice(&hash.as_bytes()[..HASH_BYTES]);
    bytes
}

fn to_hex(bytes: &[u8]) -> String {
    let halves = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    let mut text = String::with_capacity(2 * bytes.len());
    text.extend(halves.filter_map(|half| char::from_digit(half.into(), 16)));
    text
}

fn from_hex(text: &str) -> Option<[u8; HASH_BYTES]> {
    if text.len() != 2 * HASH_BYTES {
        return None;
    }
    let mut bytes = [0; HASH_BYTES];
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(text.get(2 * at..2 * at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

/// The hash of a payload's meaning: 26 characters. Equal JSON gives equal hashes, whatever the
/// order of keys and the spacing were.
#[must_use]
pub fn meaning_hash(value: &serde_json::Value) -> String {
    base32(blake3::hash(&holdpoint_graph::json::to_bytes(value)).as_bytes(), 26)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A record or a snapshot with a field that this program does not know, and a hash that fits.
    #[test]
    fn a_field_that_is_not_known_is_refused_by_name() {
        let (namespace, run) = (Namespace::new("n").unwrap(), RunId::new("r").unwrap());
        let mut chain = Chain::start(&namespace, &run);
        let mut record = chain.clone().encode(1, 2, &Event::RunParked { wake_at_ms: None });
        let text = br#"{"type":"run_parked","wake_at_ms":null,"news":1}"#;
        record.truncate(HEADER_BYTES);
        record.extend(text);
        let hash = chain.next_hash(&record);
        record[HEADER_BYTES - HASH_BYTES..HEADER_BYTES].copy_from_slice(&hash);
        let error = chain.decode(&record).unwrap_err().to_string();
        assert!(error.contains("news"), "{error}");

        let snapshot = chain.encode_snapshot(&Progress::new());
        let text = String::from_utf8(snapshot[1 + HASH_BYTES..].to_vec()).unwrap();
        let text = text.replacen("\"phase\"", "\"news\":1,\"phase\"", 1).into_bytes();
        let mut changed = vec![VERSION];
        changed.extend(chain.snapshot_mac(&text));
        changed.extend(text);
        let error = Chain::decode_snapshot(&namespace, &run, &changed).unwrap_err().to_string();
        assert!(error.contains("news"), "{error}");
    }
}
