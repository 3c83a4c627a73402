//! A short memory of ids: the last eight, as digests of eight bytes.
//!
//! A run remembers its last requests with it, and a worker its last claims, so that a call which
//! is repeated after an unknown outcome has one effect.

const DIGEST_BYTES: usize = 8;
const DIGESTS_MAX: usize = 8;

/// The digests, oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Digests(Vec<u8>);

impl Digests {
    pub(crate) const fn from_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn has(&self, id: &str) -> bool {
        let digest = digest(id);
        self.0.chunks(DIGEST_BYTES).any(|known| known == digest)
    }

    /// Adds an id, and forgets the oldest beyond eight.
    pub(crate) fn add(&mut self, id: &str) {
        let whole = self.0.len() / DIGEST_BYTES;
        let surplus = (whole + 1).saturating_sub(DIGESTS_MAX) * DIGEST_BYTES;
        self.0.drain(..surplus);
        self.0.extend(digest(id));
    }
}

/// FNV-1a. Ids that differ in a few characters never collide, random ones once in 2^64; who
/// makes two of his own collide only hides his second call from himself.
fn digest(id: &str) -> [u8; DIGEST_BYTES] {
    let mix = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    id.as_bytes().iter().fold(0xcbf2_9ce4_8422_2325, mix).to_be_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_eight_are_known() {
        let mut digests = Digests::default();
        for n in 0..20 {
            digests.add(&format!("request-{n}"));
        }
        let known: Vec<i32> = (0..20).filter(|n| digests.has(&format!("request-{n}"))).collect();
        assert_eq!(known, (12..20).collect::<Vec<_>>());
        assert_eq!(Digests::from_bytes(digests.as_bytes().to_vec()), digests);
    }
}
