//! Numbers as pages show them.

use assay_contracts::evaluations::{ChargeCounts, Total};

/// A count in groups of three digits: 1,284.
pub(crate) fn format_count(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The number of rows of a list, or that there are more than were counted.
pub(crate) fn format_total(total: &Total) -> String {
    let count = format_count(total.count);
    if total.exact { count } else { format!("more than {count}") }
}

/// A part of a whole in percent: 27.2 %; a dash when the whole is zero.
pub(crate) fn format_share(part: u64, whole: u64) -> String {
    if whole == 0 { "–".to_owned() } else { format!("{:.1} %", percent(part, whole)) }
}

/// The change of a share in percentage points: +2.8; a dash when a whole is zero. Shares are given as part and whole.
pub(crate) fn format_change(current: (u64, u64), compared: (u64, u64)) -> String {
    if current.1 == 0 || compared.1 == 0 {
        return "–".to_owned();
    }
    format_signed(percent(current.0, current.1) - percent(compared.0, compared.1), 1)
}

/// A number with its sign, which is U+2212 for minus: −0.49; ± when it is rounded to zero.
pub(crate) fn format_signed(number: f64, decimals: usize) -> String {
    let text = format!("{:.decimals$}", number.abs());
    let is_zero = text.chars().all(|character| character == '0' || character == '.');
    match number {
        _ if is_zero => format!("±{text}"),
        number if number < 0.0 => format!("−{text}"),
        _ => format!("+{text}"),
    }
}

fn percent(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole as f64
}

/// The assessments of charges, and their numbers.
pub(crate) fn charge_counts(charges: &ChargeCounts) -> [(&'static str, u64); 3] {
    [("supported", charges.supported), ("review", charges.review), ("disputed", charges.disputed)]
}

/// The number of charges with any of these assessments.
pub(crate) fn charge_total(charges: &ChargeCounts) -> u64 {
    charge_counts(charges).iter().map(|(_, number)| number).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted_for_people() {
        assert_eq!([0, 999, 1_284, 12_345_678].map(format_count), ["0", "999", "1,284", "12,345,678"]);
        assert_eq!(format_share(214, 1_284), "16.7 %");
        assert_eq!(format_share(1, 0), "–");
        assert_eq!(
            [-0.491, 0.34, -0.001].map(|number| format_signed(number, 2)),
            ["−0.49", "+0.34", "±0.00"]
        );
        assert_eq!(format_change((1, 2), (1, 4)), "+25.0");
    }
}
