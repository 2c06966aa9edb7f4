//! Formats ages and untrusted texts for one line of a terminal; the style of progress bars.

use assay_contracts::time::Timestamp;
use indicatif::ProgressStyle;

/// Time since `moment`, in its largest unit.
pub fn age(moment: Timestamp, now: Timestamp) -> String {
    let seconds = now.millis_since(moment).max(0) / 1000;
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3_600 => format!("{} min", seconds / 60),
        3_600..86_400 => format!("{} h", seconds / 3_600),
        _ => format!("{} d", seconds / 86_400),
    }
}

/// Replaces control characters, which would break the line or control the terminal.
pub fn one_line(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

/// The style of a progress bar with this template of `indicatif`.
pub fn progress_style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn age_is_shown_in_its_largest_unit() {
        let moment = Timestamp::saturating_from_millis(1_000_000);
        let cases = [
            (-5_000, "0 s"),
            (59_999, "59 s"),
            (60_000, "1 min"),
            (3_599_999, "59 min"),
            (3_600_000, "1 h"),
            (86_399_999, "23 h"),
            (86_400_000, "1 d"),
            (30 * 86_400_000, "30 d"),
        ];
        for (millis, text) in cases {
            assert_eq!(age(moment, moment.plus_millis(millis)), text);
        }
    }

    #[test]
    fn one_line_removes_control_characters() {
        assert_eq!(one_line("a\nb\u{1b}[2Jc"), "a b [2Jc");
    }
}
