//! Memory budget of request bodies. A limit on concurrent requests alone does not bound memory.

use std::ops::Deref;
use std::sync::Arc;

use actix_web::web::{Bytes, BytesMut};
use assay_contracts::ids::OrganizationId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::error::WebError;
use super::shares::{ShareInUse, Shares};

/// Largest buffer allocated before any byte has arrived.
const MAX_INITIAL_CAPACITY: usize = 64 * 1024;

/// Default number of large bodies that a role parses at once.
const PARSED_AT_ONCE: usize = 4;

/// A budget of bytes for all bodies of a role. A body counts by the bytes received, not by its declared length, so a slow or
/// lying client reserves nothing. The bodies of one organization have at most half of it together. Parsing takes memory and CPU
/// time, too: of large bodies only some are parsed at once. Clones share the budget.
#[derive(Debug, Clone)]
pub struct BodyBudget {
    available: Arc<Semaphore>,
    parse_permits: Arc<Semaphore>,
    shares: Shares,
    /// Whose bodies are received; `None`: they count for no organization.
    organization: Option<OrganizationId>,
}

/// A received body. Its bytes count against the budget until it is dropped.
#[derive(Debug)]
pub struct BufferedBody {
    bytes: Bytes,
    parse_permits: Arc<Semaphore>,
    _permit: Option<OwnedSemaphorePermit>,
    _share: ShareInUse,
}

/// A body being received.
pub(super) struct BodyBuffer {
    budget: BodyBudget,
    bytes: BytesMut,
    declared_length: usize,
    permit: Option<OwnedSemaphorePermit>,
    share: ShareInUse,
}

impl BodyBudget {
    /// A budget of `bytes`.
    pub fn new(bytes: usize) -> Self {
        let available = Arc::new(Semaphore::new(bytes.min(Semaphore::MAX_PERMITS)));
        Self {
            available,
            parse_permits: Arc::new(Semaphore::new(PARSED_AT_ONCE)),
            shares: Shares::half_of(bytes),
            organization: None,
        }
    }

    /// The same budget for bodies of an organization.
    #[must_use]
    pub fn of_organization(&self, organization: OrganizationId) -> Self {
        Self { organization: Some(organization), ..self.clone() }
    }

    /// Parses at most `bodies` large bodies at once.
    #[must_use]
    pub fn parsing_at_once(self, bodies: usize) -> Self {
        Self { parse_permits: Arc::new(Semaphore::new(bodies)), ..self }
    }

    /// A buffer for a body; `declared_length` is 0 if there is none.
    pub(super) fn receive(&self, declared_length: usize) -> BodyBuffer {
        BodyBuffer {
            budget: self.clone(),
            bytes: BytesMut::with_capacity(declared_length.min(MAX_INITIAL_CAPACITY)),
            declared_length,
            permit: None,
            share: self.shares.of(self.organization),
        }
    }
}

impl BodyBuffer {
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Appends received bytes.
    ///
    /// # Errors
    /// 503 when the budget or the share of the organization is exhausted. It does not wait: bodies that hold parts of the budget
    /// could deadlock.
    pub(super) fn push(&mut self, chunk: &[u8]) -> Result<(), WebError> {
        if !self.share.add(chunk.len()) {
            return Err(WebError::unavailable(
                &"the organization uses its share of the memory budget of request bodies",
            ));
        }
        let bytes = u32::try_from(chunk.len()).unwrap_or(u32::MAX);
        let Ok(more) = Arc::clone(&self.budget.available).try_acquire_many_owned(bytes) else {
            return Err(WebError::unavailable(&"the memory budget of request bodies is exhausted"));
        };
        match &mut self.permit {
            Some(permit) => permit.merge(more),
            None => self.permit = Some(more),
        }
        let needed = self.bytes.len() + chunk.len();
        if needed > self.bytes.capacity() {
            // Twice what is needed, but not more than the declared length; just what is needed without one.
            let grown = (2 * needed).min(self.declared_length.max(needed));
            self.bytes.reserve(grown - self.bytes.len());
        }
        self.bytes.extend_from_slice(chunk);
        Ok(())
    }

    pub(super) fn finish(self) -> BufferedBody {
        let BodyBuffer { budget, bytes, permit, share, .. } = self;
        BufferedBody {
            bytes: bytes.freeze(),
            parse_permits: budget.parse_permits,
            _permit: permit,
            _share: share,
        }
    }
}

impl BufferedBody {
    /// Frees the bytes. The budget counts them until the body is dropped, in place of what was parsed from them.
    pub fn free_bytes(&mut self) {
        self.bytes = Bytes::new();
    }

    pub(super) fn parse_permits(&self) -> &Arc<Semaphore> {
        &self.parse_permits
    }
}

impl Deref for BufferedBody {
    type Target = Bytes;

    fn deref(&self) -> &Bytes {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runtime::new_id;

    #[test]
    fn bodies_of_one_organization_have_half_of_the_budget() {
        let budget = BodyBudget::new(20);
        let (greedy, other) = (budget.of_organization(new_id()), budget.of_organization(new_id()));
        let mut first = greedy.receive(0);
        first.push(b"12345678").unwrap();
        let mut second = greedy.receive(0);
        second.push(b"12").unwrap();
        assert_eq!(second.push(b"3").unwrap_err().problem().status, 503);
        let mut of_other = other.receive(0);
        // A single body may be larger than the share.
        of_other.push(b"1234567890").unwrap();
        assert!(of_other.push(b"1").is_err(), "the whole budget is in use");
        drop(first.finish());
        of_other.push(b"12").unwrap();
        second.push(b"345").unwrap();
        drop((second, of_other));
        assert!(budget.shares.is_unused());
        assert_eq!(budget.available.available_permits(), 20);
    }

    #[test]
    fn budget_counts_received_bytes_until_the_body_is_dropped() {
        let budget = BodyBudget::new(10);
        let mut one = budget.receive(1_000_000);
        one.push(b"123456").unwrap();
        let mut other = budget.receive(0);
        other.push(b"1234").unwrap();
        assert_eq!(other.push(b"5").unwrap_err().problem().status, 503);
        let mut buffered = one.finish();
        assert_eq!(&buffered[..], b"123456");
        assert!(other.push(b"5").is_err(), "a buffered body still counts");
        buffered.free_bytes();
        assert!(buffered.is_empty());
        assert!(other.push(b"5").is_err(), "what was made of its bytes still counts");
        drop(buffered);
        other.push(b"567890").unwrap();
    }
}
