//! How a worker is told to end: first in order, then at once.

use tokio_util::sync::CancellationToken;

/// The handle that ends a worker. Cheap to clone; whoever holds it may use it, more than once too.
#[derive(Debug, Clone, Default)]
pub struct Shutdown {
    drain: CancellationToken,
    abort: CancellationToken,
}

impl Shutdown {
    /// A handle that nobody has used yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The worker claims nothing more, lets the nodes in flight end, and hands the runs back.
    pub fn drain(&self) {
        self.drain.cancel();
    }

    /// The worker drops what it is in and hands the runs back at once.
    pub fn abort(&self) {
        self.drain.cancel();
        self.abort.cancel();
    }

    /// The next step: drains, or aborts what drains already. For the handler of a signal.
    pub fn next(&self) {
        if self.drain.is_cancelled() {
            self.abort.cancel();
        } else {
            self.drain.cancel();
        }
    }

    /// Whether the worker is to end, in whatever way.
    #[must_use]
    pub fn is_draining(&self) -> bool {
        self.drain.is_cancelled()
    }

    /// Whether the worker is to end at once.
    #[must_use]
    pub fn is_aborting(&self) -> bool {
        self.abort.is_cancelled()
    }

    /// Returns when the worker is to end, in whatever way. Cancel-safe.
    pub async fn draining(&self) {
        self.drain.cancelled().await;
    }

    /// Returns when the worker is to end at once. Cancel-safe.
    pub async fn aborting(&self) {
        self.abort.cancelled().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_step_aborts_and_further_ones_change_nothing() {
        let shutdown = Shutdown::new();
        let seen = || (shutdown.is_draining(), shutdown.is_aborting());
        assert_eq!(seen(), (false, false));
        shutdown.next();
        assert_eq!(seen(), (true, false));
        shutdown.drain();
        assert_eq!(seen(), (true, false));
        shutdown.next();
        assert_eq!(seen(), (true, true));
        shutdown.next();
        assert_eq!(seen(), (true, true));
    }

    #[tokio::test]
    async fn an_abort_is_a_drain_too() {
        let shutdown = Shutdown::new();
        shutdown.clone().abort();
        shutdown.draining().await;
        shutdown.aborting().await;
    }
}
