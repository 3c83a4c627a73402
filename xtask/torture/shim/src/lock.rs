//! A lock that survives `fork`: a child of a process with several threads must not inherit it
//! closed for ever.

use std::cell::UnsafeCell;

/// A value behind a lock.
pub(crate) struct Lock<T> {
    mutex: UnsafeCell<libc::pthread_mutex_t>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is touched only between `close` and `open`.
unsafe impl<T: Send> Sync for Lock<T> {}

impl<T> Lock<T> {
    pub(crate) const fn new(value: T) -> Self {
        let mutex = UnsafeCell::new(libc::PTHREAD_MUTEX_INITIALIZER);
        Self { mutex, value: UnsafeCell::new(value) }
    }

    /// Does something with the value, alone.
    pub(crate) fn with<R>(&self, act: impl FnOnce(&mut T) -> R) -> R {
        self.close();
        // SAFETY: the mutex is ours, so nobody else has a reference to the value.
        let result = act(unsafe { &mut *self.value.get() });
        self.open();
        result
    }

    /// Takes the lock, before a fork.
    pub(crate) fn close(&self) {
        // SAFETY: the mutex is initialised and never moves.
        unsafe { libc::pthread_mutex_lock(self.mutex.get()) };
    }

    /// Gives the lock back, after a fork.
    pub(crate) fn open(&self) {
        // SAFETY: the caller has taken it.
        unsafe { libc::pthread_mutex_unlock(self.mutex.get()) };
    }

    /// The value, for whoever has taken the lock with `close`.
    ///
    /// # Safety
    /// The lock is closed, by the caller.
    pub(crate) unsafe fn closed(&self) -> *mut T {
        self.value.get()
    }
}
