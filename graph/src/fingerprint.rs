//! Fingerprints: short hashes that name a structure, a payload, a task.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The fingerprint of a graph's structure: nodes, edges, gates, reducers, effect classes; not code.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(String);

impl Fingerprint {
    /// A fingerprint from its text, as a store returns it.
    #[must_use]
    pub fn from_text(text: &str) -> Self {
        Self(text.to_owned())
    }

    /// The text: 26 characters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The first 130 bits of a hash as 26 characters of lower-case base 32 (Crockford's).
#[must_use]
pub fn short(hash: &blake3::Hash) -> String {
    base32(hash.as_bytes(), 26)
}

/// `chars` characters of base 32 from the first bits of `bytes`.
///
/// # Panics
/// Never: five bits are below 32.
#[must_use]
pub fn base32(bytes: &[u8], chars: usize) -> String {
    const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
    let bit =
        |at: usize| bytes.get(at / 8).map_or(0, |byte| usize::from((byte >> (7 - at % 8)) & 1));
    (0..chars)
        .map(|c| (0..5).fold(0, |value, b| value << 1 | bit(c * 5 + b)))
        .map(|value| char::from(*ALPHABET.get(value).expect("five bits are below 32")))
        .collect()
}

/// The hash of a list of texts; no two different lists share their bytes.
#[must_use]
pub fn of_parts(parts: &[&str]) -> String {
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    short(&hasher.finalize())
}

impl Fingerprint {
    pub(crate) fn of(structure: &impl Serialize) -> Self {
        let text = serde_json::to_vec(structure).expect("a structure always has a text");
        Self(short(&blake3::hash(&text)))
    }
}
