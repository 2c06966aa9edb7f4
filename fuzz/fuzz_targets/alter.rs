//! Altering what was signed.

/// `text` with some of its bits flipped: `changes` is pairs of a position, modulo the length, and the bits to flip there.
pub fn altered(text: &str, changes: &[u8]) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for (position, bits) in changes.chunks_exact(2).map(|pair| (usize::from(pair[0]), pair[1])) {
        let position = position % bytes.len();
        bytes[position] ^= bits;
    }
    String::from_utf8_lossy(&bytes).into_owned()
}
