//! Locks of the standard library that ignore poisoning.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks that stay usable after a panic.
///
/// A thread that panics while it holds a lock leaves it poisoned, and by default every later lock fails. Our code does not panic
/// (`clippy` refuses it), and the panic of a dependency must not fail later requests, too. That is safe: a value that a lock
/// of ours protects is changed in one step, or computed again.
pub trait LockExt {
    /// What the lock protects.
    type Value: ?Sized;

    /// Waits for the lock and holds it until the guard is dropped, whether or not a thread panicked under it.
    fn locked(&self) -> MutexGuard<'_, Self::Value>;
}

impl<T: ?Sized> LockExt for Mutex<T> {
    type Value = T;

    fn locked(&self) -> MutexGuard<'_, T> {
        self.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lock_is_usable_after_a_panic_under_it() {
        let lock = Mutex::new(1);
        let panicked = std::thread::scope(|scope| {
            let holder = scope.spawn(|| {
                let mut held = lock.locked();
                *held += 1;
                panic!("the holder fails");
            });
            holder.join().is_err()
        });
        assert!(panicked && lock.is_poisoned());
        assert_eq!(*lock.locked(), 2);
    }
}
