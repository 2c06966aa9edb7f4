//! Numbers as they are written into a weights file.

/// Ten to the power of the places that a weights file keeps.
const SCALE: f64 = 100_000.0;

/// Rounded to the places that a weights file keeps. The result is the `f64` nearest to a decimal of so many places,
/// so that the shortest decimal that is written for it reads back as the same number.
pub(crate) fn rounded(value: f64) -> f64 {
    let rounded = (value * SCALE).round() / SCALE;
    // A negative zero would be written as one.
    if rounded == 0.0 { 0.0 } else { rounded }
}

#[cfg(test)]
mod tests {
    use assay_scoring::weights_file::DECIMALS;

    use super::*;

    #[test]
    fn a_rounded_number_is_written_short_and_reads_back_exactly() {
        assert_eq!(SCALE, f64::from(10u32.pow(DECIMALS)));
        for value in [0.1 + 0.2, 1.0 / 3.0, 2.0_f64.ln(), 4.999_995, -1e-9, 123.456_789] {
            let written = serde_json::to_string(&rounded(value)).unwrap();
            assert!(written.len() <= 9, "{written}");
            assert_eq!(serde_json::from_str::<f64>(&written).unwrap(), rounded(value));
            assert!(!written.starts_with("-0.0") || written.len() > 4, "{written}");
        }
    }
}
