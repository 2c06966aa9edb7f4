//! The resolution audit: supports checking an AI vendor's bill.

mod charge;
mod resolution;

pub(crate) use self::charge::charge;
pub(crate) use self::resolution::Verdict;

/// Rules on which buyers and vendors differ. The defaults are the cautious ones.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Policy {
    /// Whether a customer who does not write again after a substantive AI answer counts as resolved. Vendors
    /// often bill it; by default it is `partial` and the charge goes to `review`.
    pub silence_is_resolved: bool,
    /// Whether a conversation with a completed handoff counts as not resolved even when the human solved it.
    pub escalation_counts_as_not_resolved: bool,
}
