//! The stored form of a payload: what the producer sent, behind a hash that knows whose it is.
//!
//! A record is `version, hash, bytes`. The hash covers the namespace, the run and the bytes, so an
//! envelope that was altered, cut, or copied from another run does not open. Backends seal what
//! they store and open what they read; nobody above them sees the sealed form.

use holdpoint_graph::{Namespace, RunId};

use crate::StoreError;

const VERSION: u8 = 1;
const HASH_BYTES: usize = 16;

/// Makes the stored form of a run's payload.
#[must_use]
pub fn seal(namespace: &Namespace, run: &RunId, payload: &[u8]) -> Vec<u8> {
    let mut sealed = Vec::with_capacity(1 + HASH_BYTES + payload.len());
    sealed.push(VERSION);
    sealed.extend(hash(namespace, run, payload));
    sealed.extend(payload);
    sealed
}

/// Gives the payload back that was sealed for this run.
///
/// # Errors
/// [`StoreError::Corrupt`] when it is not the one that was.
pub fn open(
    namespace: &Namespace,
    run: &RunId,
    mut sealed: Vec<u8>,
) -> Result<Vec<u8>, StoreError> {
    let bad = |why: String| {
        let why = format!("payload: {why}");
        StoreError::Corrupt { what: format!("run {run}"), why }
    };
    match sealed.first() {
        None => return Err(bad("is empty".to_owned())),
        Some(&VERSION) => {}
        Some(version) => {
            return Err(bad(format!("has version {version}, this program reads {VERSION}")));
        }
    }
    if sealed.len() <= HASH_BYTES {
        return Err(bad("is cut short".to_owned()));
    }
    let payload = sealed.split_off(1 + HASH_BYTES);
    if sealed.get(1..) != Some(&hash(namespace, run, &payload)[..]) {
        return Err(bad("its hash does not verify".to_owned()));
    }
    Ok(payload)
}

fn hash(namespace: &Namespace, run: &RunId, payload: &[u8]) -> [u8; HASH_BYTES] {
    let key = blake3::derive_key("holdpoint payload v1", namespace.as_str().as_bytes());
    let mut hasher = blake3::Hasher::new_keyed(&key);
    hasher.update(&(run.as_str().len() as u64).to_be_bytes());
    hasher.update(run.as_str().as_bytes());
    hasher.update(payload);
    let mut first = [0; HASH_BYTES];
    first.copy_from_slice(&hasher.finalize().as_bytes()[..HASH_BYTES]);
    first
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sealed_for(namespace: &str, run: &str) -> Vec<u8> {
        seal(&namespace.parse().unwrap(), &run.parse().unwrap(), b"{\"a\":1}")
    }

    fn check(stored: Vec<u8>, expect: &str) {
        let opened = open(&"n".parse().unwrap(), &"r1".parse().unwrap(), stored);
        let got = match opened {
            Ok(payload) => String::from_utf8(payload).unwrap(),
            Err(error) => error.to_string(),
        };
        assert!(got.contains(expect), "{got}");
    }

    #[test]
    fn a_payload_opens_for_its_own_run_only() {
        let good = sealed_for("n", "r1");
        check(good.clone(), "{\"a\":1}");
        check(sealed_for("n", "r2"), "does not verify");
        check(sealed_for("m", "r1"), "does not verify");
        check(Vec::new(), "is empty");
        check(good[..16].to_vec(), "is cut short");
        check(good[..20].to_vec(), "does not verify");
        check([&[2], &good[1..]].concat(), "version 2");
    }

    #[test]
    fn every_flipped_bit_is_seen() {
        let good = sealed_for("n", "r1");
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let opened = open(&"n".parse().unwrap(), &"r1".parse().unwrap(), bad);
            assert!(opened.is_err(), "bit {bit}");
        }
    }
}
