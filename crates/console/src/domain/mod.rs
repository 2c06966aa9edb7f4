//! The console's rules, without I/O.

mod browser;
mod dates;
mod failed_sign_ins;
mod filter_words;
mod kept_form;
mod list_state;
mod marked_text;
mod numbers;
mod period;
mod request_rules;
mod scale;
mod words;

pub(crate) use self::browser::browser_name;
pub(crate) use self::dates::{PageTime, day_of, format_days, format_duration, parse_day, plus_days};
pub(crate) use self::failed_sign_ins::FailedSignIns;
pub(crate) use self::filter_words::{
    SCORES, ai_tool_label, ai_tools, closed_filters, filter_label, language_label, languages, reason_meaning,
    resolution_words, value_label,
};
pub(crate) use self::kept_form::KeptForm;
pub(crate) use self::list_state::{
    COLUMNS, Column, ListState, Pairs, ROWS_PER_PAGE, filter_pairs, first_value, list_address, parse_pairs,
    with_query,
};
pub(crate) use self::marked_text::{
    PART_BYTES, Quote, Run, Segment, escaped_json, max_bytes_per_text, part_ranges, plain_text, runs,
    segments,
};
pub(crate) use self::numbers::{
    charge_counts, charge_total, format_change, format_count, format_share, format_signed, format_total,
};
pub(crate) use self::period::{COMPARISONS, PERIODS, Period};
pub(crate) use self::request_rules::{cookie_value, is_same_origin, may_redirect_to};
pub(crate) use self::scale::{Trend, TrendPoint, axis_floor, draw_trend, score_percent};
pub(crate) use self::words::{MAX_NAME_CHARACTERS, capitalized, words};
