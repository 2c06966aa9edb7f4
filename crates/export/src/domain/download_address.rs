//! Signed download URLs: a URL grants access to the file until it expires, without an API key.

use std::collections::BTreeMap;

use assay_contracts::ids::ExportId;
use assay_contracts::time::Timestamp;
use assay_platform::auth::KeyRing;

const PURPOSE: &str = "download of an export";

/// Validity of a signed URL, in milliseconds: 15 minutes.
pub const LIFETIME_MILLIS: i64 = 15 * 60 * 1_000;

/// Malformed, altered or expired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the download address is not valid or has expired: read the export again for a fresh one")]
pub struct InvalidAddress;

/// Signs the URL of a file. `base` is the public base URL, without a trailing slash.
pub fn sign(keys: &KeyRing, base: &str, id: ExportId, now: Timestamp) -> String {
    let expires = now.plus_millis(LIFETIME_MILLIS).as_millis();
    let (key, signature) = keys.sign(PURPOSE, &content(id, expires));
    format!("{base}/v1/downloads/{id}?expires={expires}&key={key}&signature={signature}")
}

/// Verifies the URL of a request, in constant time. `query` contains its parameters.
///
/// # Errors
/// For any URL that [`sign`] did not make, and from its expiry on.
pub fn verify(
    keys: &KeyRing,
    id: &str,
    query: &BTreeMap<String, String>,
    now: Timestamp,
) -> Result<ExportId, InvalidAddress> {
    let parameter = |name: &str| query.get(name).map(String::as_str).ok_or(InvalidAddress);
    let id: ExportId = id.parse().map_err(|_| InvalidAddress)?;
    let text = parameter("expires")?;
    let expires: i64 = text.parse().map_err(|_| InvalidAddress)?;
    // Canonical form only: `+17` and `017` parse to the same number.
    if expires.to_string() != text {
        return Err(InvalidAddress);
    }
    keys.verify(PURPOSE, &content(id, expires), parameter("key")?, parameter("signature")?)
        .map_err(|_| InvalidAddress)?;
    if expires <= now.as_millis() { Err(InvalidAddress) } else { Ok(id) }
}

/// Both parts have a fixed length: the encoding is unambiguous.
fn content(id: ExportId, expires: i64) -> Vec<u8> {
    [id.as_uuid().as_bytes().as_slice(), &expires.to_be_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use assay_platform::runtime::new_id;

    use super::*;

    const NOW: Timestamp = Timestamp::saturating_from_millis(1_763_600_000_000);

    fn keys() -> KeyRing {
        KeyRing::parse(&"k1:0123456789abcdef0123456789abcdef".to_owned().into()).unwrap()
    }

    fn parameters(address: &str) -> BTreeMap<String, String> {
        let query = address.split_once('?').unwrap().1;
        query
            .split('&')
            .map(|pair| pair.split_once('=').unwrap())
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    }

    #[test]
    fn signed_url_is_valid_for_15_minutes() {
        let id: ExportId = new_id();
        let address = sign(&keys(), "https://assay.example", id, NOW);
        assert!(address.starts_with(&format!("https://assay.example/v1/downloads/{id}?expires=")));
        let query = parameters(&address);
        let at = |millis| verify(&keys(), &id.to_string(), &query, NOW.plus_millis(millis));
        assert_eq!(at(LIFETIME_MILLIS - 1), Ok(id));
        assert_eq!(at(LIFETIME_MILLIS), Err(InvalidAddress));
    }

    #[test]
    fn altered_url_is_refused() {
        let id: ExportId = new_id();
        let query = parameters(&sign(&keys(), "", id, NOW));
        let other: ExportId = new_id();
        assert_eq!(verify(&keys(), &other.to_string(), &query, NOW), Err(InvalidAddress));
        assert_eq!(verify(&keys(), &id.to_string().to_uppercase(), &query, NOW), Err(InvalidAddress));
        for name in ["expires", "key", "signature"] {
            let mut missing = query.clone();
            missing.remove(name);
            assert_eq!(
                verify(&keys(), &id.to_string(), &missing, NOW),
                Err(InvalidAddress),
                "without {name}"
            );
            for change in ["", "0", "x", "+"] {
                let mut altered = query.clone();
                altered.insert(name.to_owned(), format!("{change}{}", &query[name][1..]));
                if altered == query {
                    continue; // A signature may begin with the change.
                }
                assert_eq!(
                    verify(&keys(), &id.to_string(), &altered, NOW),
                    Err(InvalidAddress),
                    "{name} {change}"
                );
            }
        }
    }
}
