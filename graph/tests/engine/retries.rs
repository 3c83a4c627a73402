//! The waits of retries: never less than they may be, never more than the cap, whatever the number.

use std::time::Duration;

use holdpoint_graph::RetryPolicy;

/// PF-03: without jitter the wait rises to the cap and stays there; jitter takes at most nine
/// tenths of it, so it never becomes a storm.
#[test]
fn waits_rise_to_the_cap_and_stay() {
    let (base, cap) = (Duration::from_secs(1), Duration::from_secs(5));
    for factor in [1.0, 2.0, 10.0, 1_000.0] {
        let policy = RetryPolicy::new(200, base, factor, cap).unwrap();
        let waits: Vec<Duration> =
            (1..=200).chain([u32::MAX]).map(|attempt| policy.wait(attempt, 1.0)).collect();
        assert_eq!(waits.first(), Some(&base));
        assert!(waits.is_sorted() && waits.iter().all(|wait| (base..=cap).contains(wait)));
        for (at, full) in waits.iter().enumerate() {
            for chance in [0.0, 0.5, -1.0, 2.0] {
                let wait = policy.wait(at as u32 + 1, chance);
                assert!(wait >= *full / 11 && wait <= *full, "{factor} {at} {chance}: {wait:?}");
            }
        }
    }
}

#[test]
fn a_policy_that_makes_no_sense_is_refused() {
    let (base, cap) = (Duration::from_secs(1), Duration::from_secs(5));
    for factor in [0.0, -1.0, 0.99, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1_001.0] {
        assert!(RetryPolicy::new(3, base, factor, cap).is_err(), "{factor}");
    }
    assert!(RetryPolicy::new(0, base, 2.0, cap).is_err());
    assert!(RetryPolicy::new(1_001, base, 2.0, cap).is_err());
    assert!(RetryPolicy::new(3, cap, 2.0, base).is_err());
    assert!(RetryPolicy::new(3, base, 2.0, Duration::from_secs(86_401)).is_err());
}
