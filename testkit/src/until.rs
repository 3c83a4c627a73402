//! Waiting for a condition that only another process can make true.
//!
//! A test that sleeps hopes that the other side is quick enough; it fails on a slow machine and
//! wastes time on a fast one.
//! [`until`] looks again and again, returns the moment the condition holds, and gives up only at
//! a deadline so generous that reaching it means the condition will never hold.
//! So the pause between two looks decides nothing but the cost of looking.
//! Inside one process there is always something better: a channel, a `Notify`, paused time.

use std::time::{Duration, Instant};

/// The pause between two looks at the condition.
const PAUSE: Duration = Duration::from_millis(5);

/// Looks until `look` returns a value, and returns that value.
///
/// `what` completes the sentence "waited ... for {what}".
///
/// # Panics
///
/// When `deadline` has passed without a value.
#[track_caller]
pub fn until<T>(what: &str, deadline: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let end = Deadline::after(deadline);
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(!end.has_passed(), "waited {deadline:?} in vain for {what}");
        pause();
    }
}

/// Like [`until`], for a `look` that awaits.
///
/// The deadline is measured in real time, also under tokio's paused clock: the other process does
/// not know of that clock.
/// Dropping the future abandons the wait; nothing else is lost.
///
/// # Panics
///
/// When `deadline` has passed without a value.
pub async fn until_async<T>(
    what: &str,
    deadline: Duration,
    mut look: impl AsyncFnMut() -> Option<T>,
) -> T {
    let end = Deadline::after(deadline);
    loop {
        if let Some(found) = look().await {
            return found;
        }
        assert!(!end.has_passed(), "waited {deadline:?} in vain for {what}");
        tokio::time::sleep(PAUSE).await;
    }
}

/// Lets other processes work before the next look.
pub(crate) fn pause() {
    std::thread::sleep(PAUSE);
}

/// A point in monotonic time after which waiting is pointless.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline(Instant);

impl Deadline {
    /// The deadline `duration` from now.
    pub(crate) fn after(duration: Duration) -> Self {
        Self(now() + duration)
    }

    /// Whether the deadline lies behind us.
    pub(crate) fn has_passed(self) -> bool {
        now() >= self.0
    }
}

#[expect(clippy::disallowed_methods, reason = "other processes live in the host's real time")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn returns_the_first_value() {
        let mut looks = 0;
        let found = until("the third look", Duration::from_secs(10), || {
            looks += 1;
            (looks == 3).then_some(looks)
        });
        assert_eq!(found, 3);
    }

    #[test]
    fn looks_at_least_once() {
        assert_eq!(until("nothing", Duration::ZERO, || Some(7)), 7);
    }

    #[test]
    fn gives_up_at_the_deadline_and_says_what_it_waited_for() {
        let panic = std::panic::catch_unwind(|| {
            until("a miracle", Duration::from_millis(20), || None::<()>);
        })
        .unwrap_err();
        let text = panic.downcast_ref::<String>().unwrap();
        assert!(text.contains("a miracle"), "{text}");
    }

    #[tokio::test]
    async fn waits_for_an_async_look() {
        let mut looks = 0;
        let found = until_async("the second look", Duration::from_secs(10), async || {
            tokio::task::yield_now().await;
            looks += 1;
            (looks == 2).then_some("seen")
        })
        .await;
        assert_eq!(found, "seen");
    }
}
