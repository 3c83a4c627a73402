//! Chance from a seed: the same seed, the same numbers, on every machine.

/// A stream of numbers.
#[derive(Debug, Clone)]
pub(crate) struct Chance(u64);

impl Chance {
    /// The stream of `seed` for one purpose, so that two purposes do not share numbers.
    pub(crate) fn new(seed: u64, purpose: &str) -> Self {
        let start = purpose.bytes().fold(seed ^ 0x9e37_79b9_7f4a_7c15, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Self(start)
    }

    /// The next number (splitmix64).
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `end`; 0 when that is 0.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        if end == 0 { 0 } else { self.next() % end }
    }

    /// A number from `from` to `to`, both included.
    pub(crate) fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    /// True in so many of 100 cases.
    pub(crate) fn percent(&mut self, share: u64) -> bool {
        self.below(100) < share
    }

    /// One of the choices.
    ///
    /// # Panics
    /// When there is none.
    pub(crate) fn one_of<'a, T>(&mut self, choices: &'a [T]) -> &'a T {
        let index = usize::try_from(self.below(choices.len() as u64)).unwrap_or(0);
        choices.get(index).expect("there is a choice")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_and_another_gives_others() {
        let take = |seed, purpose| {
            let mut chance = Chance::new(seed, purpose);
            [chance.next(), chance.next(), chance.next()]
        };
        assert_eq!(take(7, "plan"), take(7, "plan"));
        assert_ne!(take(7, "plan"), take(8, "plan"));
        assert_ne!(take(7, "plan"), take(7, "load"));
    }
}
