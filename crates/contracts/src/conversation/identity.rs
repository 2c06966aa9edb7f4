//! The identity of an import, by which a second import of the same conversation is refused.

use sha2::{Digest, Sha256};

/// Scope within which a ticket id is unique. The two kinds are disjoint: an account named `zendesk` is not the source
/// `zendesk`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Namespace<'a> {
    /// The `source_account_id` of the request.
    Account(&'a str),
    /// The `source`, for a request without an account.
    Source(&'a str),
}

/// SHA-256 of an import's identity, which itself can be too long for an index entry of the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct IdentityHash([u8; 32]);

impl IdentityHash {
    /// Hashes `ticket_id` within `namespace`. The organization is a separate column and not part of the hash.
    pub fn of(namespace: Namespace<'_>, ticket_id: &str) -> Self {
        let (kind, name) = match namespace {
            Namespace::Account(name) => (b'a', name),
            Namespace::Source(name) => (b's', name),
        };
        let mut hasher = Sha256::new();
        hasher.update([kind]);
        // The length prefix distinguishes ("ab", "c") from ("a", "bc").
        hasher.update((name.len() as u64).to_be_bytes());
        hasher.update(name.as_bytes());
        hasher.update(ticket_id.as_bytes());
        Self(hasher.finalize().into())
    }

    /// The 32 bytes, for storage.
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_separates_accounts_sources_and_ids() {
        let identities = [
            IdentityHash::of(Namespace::Account("ab"), "c"),
            IdentityHash::of(Namespace::Source("ab"), "c"),
            IdentityHash::of(Namespace::Source("a"), "bc"),
            IdentityHash::of(Namespace::Source("A"), "bc"),
        ];
        for (index, one) in identities.iter().enumerate() {
            assert!(identities[index + 1..].iter().all(|other| other != one));
        }
    }
}
