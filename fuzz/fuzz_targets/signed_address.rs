//! Any query as a signed download address: it opens the file only when it says what the service signed.

#![no_main]

#[path = "alter.rs"]
mod alter;

use std::collections::BTreeMap;
use std::sync::LazyLock;

use assay_contracts::ids::ExportId;
use assay_contracts::time::Timestamp;
use assay_export::domain::download_address::{LIFETIME_MILLIS, sign, verify};
use assay_platform::auth::KeyRing;
use libfuzzer_sys::fuzz_target;
use uuid::Uuid;

const NOW: Timestamp = Timestamp::saturating_from_millis(1_795_158_000_000);

static KEYS: LazyLock<KeyRing> = LazyLock::new(|| {
    let keys = "k2:fedcba9876543210fedcba9876543210,k1:0123456789abcdef0123456789abcdef";
    KeyRing::parse(&keys.to_owned().into()).expect("good keys")
});

fuzz_target!(|data: &[u8]| {
    let text = String::from_utf8_lossy(data);
    let (id, query) = text.split_once('?').unwrap_or(("", &text));
    assert!(verify(&KEYS, id, &parameters(query), NOW).is_err(), "guessed: {text}");
    if let Some((id, changes)) = data.split_first_chunk::<16>() {
        check_address(ExportId::from(Uuid::from_bytes(*id)), changes);
    }
});

/// A signed address is valid for its lifetime. With bits flipped it is refused, unless its parameters are the same.
fn check_address(id: ExportId, changes: &[u8]) {
    let address = sign(&KEYS, "", id, NOW);
    let query = address.split_once('?').expect("a query").1;
    let signed = parameters(query);
    let verify_at = |moment| verify(&KEYS, &id.to_string(), &signed, moment);
    assert_eq!(verify_at(NOW.plus_millis(LIFETIME_MILLIS - 1)), Ok(id));
    assert!(verify_at(NOW.plus_millis(LIFETIME_MILLIS)).is_err(), "too old");
    let altered = parameters(&alter::altered(query, changes));
    let is_same = ["expires", "key", "signature"].iter().all(|name| altered.get(*name) == signed.get(*name));
    assert_eq!(verify(&KEYS, &id.to_string(), &altered, NOW).is_ok(), is_same, "{altered:?}");
}

fn parameters(query: &str) -> BTreeMap<String, String> {
    let pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}
