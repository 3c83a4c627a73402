//! Counts that remember examples of what they counted.

use serde::Serialize;

/// Examples that a count keeps; a broken run repeats the same fault thousands of times.
const EXAMPLES_MAX: usize = 20;

/// How often something was found, and the first places.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Count {
    /// How often.
    pub count: u64,
    /// The first places, for people.
    pub examples: Vec<String>,
}

impl Count {
    /// A count of these.
    pub(crate) fn of(examples: &[String]) -> Self {
        let mut count = Self::default();
        examples.iter().for_each(|example| count.add(example));
        count
    }

    /// Counts one more.
    pub(crate) fn add(&mut self, example: impl Into<String>) {
        self.count += 1;
        if self.examples.len() < EXAMPLES_MAX {
            self.examples.push(example.into());
        }
    }
}

/// Measured times, in ms.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Samples {
    ms: Vec<u64>,
}

impl Samples {
    /// These times.
    #[must_use]
    pub fn of(mut ms: Vec<u64>) -> Self {
        ms.sort_unstable();
        Self { ms }
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ms.len()
    }

    /// Whether nothing was measured.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ms.is_empty()
    }

    /// The time that this share of a hundred does not exceed (nearest rank); 0 without samples.
    #[must_use]
    pub fn percentile(&self, share: usize) -> u64 {
        let rank = (self.ms.len() * share).div_ceil(100).max(1);
        self.ms.get(rank - 1).copied().unwrap_or(0)
    }

    /// The longest.
    #[must_use]
    pub fn max(&self) -> u64 {
        self.percentile(100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let samples = Samples::of((1..=200).rev().collect());
        assert_eq!([50, 99, 100].map(|share| samples.percentile(share)), [100, 198, 200]);
        assert_eq!(Samples::of(vec![7]).percentile(1), 7);
        assert_eq!(Samples::default().max(), 0);
    }

    #[test]
    fn examples_are_limited_and_counts_are_not() {
        let mut count = Count::default();
        (0..100).for_each(|n| count.add(n.to_string()));
        assert_eq!((count.count, count.examples.len()), (100, EXAMPLES_MAX));
    }
}
