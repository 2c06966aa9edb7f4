//! Coordinates in figures: on the scale of scores, and in trend charts. Templates draw the figures.

use assay_contracts::time::{DAY_MILLIS, Timestamp};

use super::dates::utc;

/// The position of a score on the scale from 1 to 5, in percent.
pub(crate) fn score_percent(score: f64) -> f64 {
    (score.clamp(1.0, 5.0) - 1.0) / 4.0 * 100.0
}

// Edges of the plot area of a trend chart.
const LEFT: f64 = 26.0;
const RIGHT: f64 = 252.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 142.0;

/// Labels of days of a longer period have the year.
const LONG_PERIOD_MILLIS: i64 = 300 * DAY_MILLIS;

/// A point of a trend: the beginning of its step of the period, and its mean, if anything was scored.
pub(crate) type TrendPoint = (Timestamp, Option<f64>);

/// The coordinates of a trend chart, which is 310 wide and 164 high.
pub(crate) struct Trend {
    /// Horizontal lines: label, y.
    pub(crate) lines: Vec<(String, String)>,
    /// Names of bands: name, y.
    pub(crate) bands: Vec<(&'static str, String)>,
    /// Days under the axis: x, text anchor, text.
    pub(crate) days: Vec<(String, &'static str, String)>,
    /// The polylines of this period; more than one when a step in between has no value.
    pub(crate) current: Vec<String>,
    /// Those of the compared period.
    pub(crate) compared: Vec<String>,
    /// The last value: x, y.
    pub(crate) dot: Option<(String, String)>,
}

/// The lowest value of the axis that all charts share: the lower border of the band `mixed`, or 1 when a value is below it.
pub(crate) fn axis_floor(values: impl Iterator<Item = f64>) -> f64 {
    let lowest = values.fold(5.0, f64::min);
    if lowest >= 2.5 { 2.5 } else { 1.0 }
}

/// The trend of a period and that of the compared period; the axis begins at `floor`, a result of [`axis_floor`].
pub(crate) fn draw_trend(current: &[TrendPoint], compared: &[TrendPoint], floor: f64) -> Trend {
    let y = |value: f64| BOTTOM - (value.clamp(floor, 5.0) - floor) / (5.0 - floor) * (BOTTOM - TOP);
    let steps = current.len().max(compared.len());
    let x = |index: usize| match steps {
        0 | 1 => (LEFT + RIGHT) / 2.0,
        _ => LEFT + index as f64 / (steps - 1) as f64 * (RIGHT - LEFT),
    };
    let borders = [1.0, 2.5, 3.5, 4.5, 5.0].into_iter().filter(|border| *border >= floor);
    let bands = [("excellent", 4.5, 5.0), ("good", 3.5, 4.5), ("mixed", 2.5, 3.5), ("poor", 1.0, 2.5)];
    let in_view = bands.into_iter().filter(|(_, from, _)| *from >= floor);
    let drawn = |points: &[TrendPoint]| polylines(points, |index, value| (x(index), y(value)));
    let last = current.iter().rposition(|(_, value)| value.is_some());
    let dot =
        last.and_then(|index| current[index].1.map(|value| (coordinate(x(index)), coordinate(y(value)))));
    Trend {
        lines: borders.map(|border| (short_number(border), coordinate(y(border)))).collect(),
        // A text is placed by its baseline: 4 below the middle of its band.
        bands: in_view.map(|(name, from, to)| (name, coordinate(y((from + to) / 2.0) + 4.0))).collect(),
        days: days(current, x),
        current: drawn(current),
        compared: drawn(compared),
        dot,
    }
}

/// At most four days under the axis.
fn days(points: &[TrendPoint], x: impl Fn(usize) -> f64) -> Vec<(String, &'static str, String)> {
    let last = points.len().saturating_sub(1);
    let labelled: Vec<usize> = match points.len() {
        0 => Vec::new(),
        1..=3 => (0..points.len()).collect(),
        _ => vec![0, last / 3, last * 2 / 3, last],
    };
    let anchor = |index: usize| match index {
        0 if last > 0 => "start",
        _ => "middle",
    };
    // A year later the same day would have the same label.
    let is_long = points
        .first()
        .zip(points.last())
        .is_some_and(|(first, last)| last.0.millis_since(first.0) > LONG_PERIOD_MILLIS);
    let format = if is_long { "%b %Y" } else { "%-d %b" };
    labelled
        .into_iter()
        .map(|index| (coordinate(x(index)), anchor(index), utc(points[index].0).format(format).to_string()))
        .collect()
}

/// Polylines, interrupted where there is no value. A single value between two gaps is a line of two equal points.
fn polylines(points: &[TrendPoint], position: impl Fn(usize, f64) -> (f64, f64)) -> Vec<String> {
    let mut lines: Vec<Vec<String>> = vec![Vec::new()];
    for (index, (_, value)) in points.iter().enumerate() {
        match (value, lines.last_mut()) {
            (Some(value), Some(line)) => {
                let (x, y) = position(index, *value);
                line.push(format!("{},{}", coordinate(x), coordinate(y)));
            }
            _ => lines.push(Vec::new()),
        }
    }
    let mut drawn: Vec<String> = Vec::new();
    for mut line in lines.into_iter().filter(|line| !line.is_empty()) {
        if line.len() == 1 {
            line.push(line[0].clone());
        }
        drawn.push(line.join(" "));
    }
    drawn
}

fn coordinate(value: f64) -> String {
    format!("{value:.1}")
}

/// A number without `.0`.
fn short_number(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn points(values: &[Option<f64>]) -> Vec<TrendPoint> {
        let day = |at: usize| Timestamp::saturating_from_millis(at as i64 * DAY_MILLIS);
        values.iter().enumerate().map(|(at, value)| (day(at), *value)).collect()
    }

    #[test]
    fn axis_begins_above_one_only_if_no_value_lies_below() {
        assert_eq!(axis_floor([3.4, 2.5].into_iter()), 2.5);
        assert_eq!(axis_floor([3.4, 2.49].into_iter()), 1.0);
    }

    #[test]
    fn line_is_interrupted_where_nothing_was_scored() {
        let drawn = draw_trend(&points(&[Some(3.0), Some(4.0), None, Some(5.0)]), &[], 1.0);
        assert_eq!(drawn.current.len(), 2);
        assert_eq!(drawn.current[0].split(' ').count(), 2);
        assert_eq!(drawn.dot, Some(("252.0".to_owned(), "10.0".to_owned())));
    }

    #[test]
    fn labels_of_long_periods_have_the_year() {
        let labels = |days: usize| {
            let drawn = draw_trend(&points(&vec![Some(3.0); days]), &[], 1.0);
            [drawn.days.first().unwrap().2.clone(), drawn.days.last().unwrap().2.clone()]
        };
        assert_eq!(labels(31), ["1 Jan", "31 Jan"]);
        assert_eq!(labels(366), ["Jan 1970", "Jan 1971"]);
    }

    #[test]
    fn empty_trend_has_axes_and_no_lines() {
        let drawn = draw_trend(&[], &[], 2.5);
        assert!(drawn.current.is_empty() && drawn.dot.is_none() && drawn.days.is_empty());
        assert_eq!(
            drawn.lines.iter().map(|(text, _)| text.as_str()).collect::<Vec<_>>(),
            ["2.5", "3.5", "4.5", "5"]
        );
    }

    #[test]
    fn score_is_placed_on_the_scale() {
        assert_eq!([1.0, 3.0, 5.0].map(score_percent), [0.0, 50.0, 100.0]);
    }
}
