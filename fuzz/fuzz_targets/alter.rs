//! Altering what was signed.

/// `text` with some bytes of it changed: `changes` is pairs of a place and of the bits to turn there.
pub fn altered(text: &str, changes: &[u8]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for (place, bits) in changes.chunks_exact(2).map(|pair| (usize::from(pair[0]), pair[1])) {
        let place = place % bytes.len();
        bytes[place] ^= bits;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
