//! Query parameters.

use std::collections::BTreeMap;

use assay_contracts::evaluation::Named as _;
use assay_contracts::webhook::DeliveryStatus;
use assay_platform::web::{WebError, invalid_parameter};

/// `status`, one of [`DeliveryStatus::ALL`].
pub(super) fn status(query: &BTreeMap<String, String>) -> Result<Option<DeliveryStatus>, WebError> {
    let status = query.get("status").map(|name| {
        DeliveryStatus::from_name(name).ok_or_else(|| {
            invalid_parameter("status", &format!("must be one of: {}", DeliveryStatus::names()))
        })
    });
    status.transpose()
}
