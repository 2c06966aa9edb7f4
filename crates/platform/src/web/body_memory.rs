//! How many bytes of bodies are held at once: a bound on memory, which a bound on requests is not.

use std::ops::Deref;
use std::sync::Arc;

use actix_web::web::{Bytes, BytesMut};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::WebError;

/// Room that a body gets for its word alone.
const FIRST_BYTES: usize = 64 * 1024;

/// A budget of bytes for all bodies of a role together. A body counts by what has arrived of it, so that a client that
/// promises much and sends little takes little. Cloned freely; all clones are one.
#[derive(Debug, Clone)]
pub struct BodyMemory {
    free: Arc<Semaphore>,
}

/// A body that has arrived. Its bytes count until it is dropped.
#[derive(Debug)]
pub struct HeldBody {
    bytes: Bytes,
    _share: Option<OwnedSemaphorePermit>,
}

/// A body that is arriving.
pub(super) struct ArrivingBody {
    memory: BodyMemory,
    bytes: BytesMut,
    expected: usize,
    share: Option<OwnedSemaphorePermit>,
}

impl BodyMemory {
    /// A budget of so many bytes.
    pub fn new(bytes: usize) -> Self {
        Self { free: Arc::new(Semaphore::new(bytes.min(Semaphore::MAX_PERMITS))) }
    }

    /// Room for a body that says to be `expected` bytes long. Until it has kept its word it gets little.
    pub(super) fn receive(&self, expected: usize) -> ArrivingBody {
        ArrivingBody {
            memory: self.clone(),
            bytes: BytesMut::with_capacity(expected.min(FIRST_BYTES)),
            expected,
            share: None,
        }
    }
}

impl ArrivingBody {
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Adds what has arrived.
    ///
    /// # Errors
    /// 503 when the budget is used up: nobody waits for it, because those who hold the rest might wait, too.
    pub(super) fn push(&mut self, chunk: &[u8]) -> Result<(), WebError> {
        let bytes = u32::try_from(chunk.len()).unwrap_or(u32::MAX);
        let Ok(more) = Arc::clone(&self.memory.free).try_acquire_many_owned(bytes) else {
            return Err(WebError::unavailable(&"too many bytes of bodies are held"));
        };
        match &mut self.share {
            Some(share) => share.merge(more),
            None => self.share = Some(more),
        }
        let needed = self.bytes.len() + chunk.len();
        if needed > self.bytes.capacity() {
            // Twice as much, as usual, but no more than the body will need.
            let grown = (2 * needed).min(self.expected.max(needed));
            self.bytes.reserve(grown - self.bytes.len());
        }
        self.bytes.extend_from_slice(chunk);
        Ok(())
    }

    pub(super) fn finish(self) -> HeldBody {
        HeldBody { bytes: self.bytes.freeze(), _share: self.share }
    }
}

impl Deref for HeldBody {
    type Target = Bytes;

    fn deref(&self) -> &Bytes {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_count_by_what_has_arrived_until_they_are_dropped() {
        let memory = BodyMemory::new(10);
        let mut one = memory.receive(1_000_000);
        one.push(b"123456").unwrap();
        let mut other = memory.receive(0);
        other.push(b"1234").unwrap();
        assert_eq!(other.push(b"5").unwrap_err().problem().status, 503);
        let held = one.finish();
        assert_eq!(&held[..], b"123456");
        assert!(other.push(b"5").is_err(), "a body that has arrived still counts");
        drop(held);
        other.push(b"567890").unwrap();
    }
}
