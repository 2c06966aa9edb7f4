//! Random names and secrets.

use anyhow::{Context as _, Result};

/// Random bytes in lower-case hexadecimal; the text is twice as long as `bytes`.
pub(crate) fn hex_secret(bytes: usize) -> Result<String> {
    let mut buffer = vec![0; bytes];
    getrandom::fill(&mut buffer).context("the system gives no random bytes")?;
    Ok(hex::encode(buffer))
}

/// A name that no other test uses: `prefix`, a dash and 12 hexadecimal digits.
///
/// For broker namespaces and the like, so that tests can share one server.
///
/// # Errors
/// When the system gives no random bytes.
pub fn random_name(prefix: &str) -> Result<String> {
    Ok(format!("{prefix}-{}", hex_secret(6)?))
}
