//! The filters of evaluations: every error is reported, and a canonical query parses to the same filters.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by panicking")]

use assay_contracts::evaluation::{AxisBand, ChargeAssessment, Confidence, Score};
use assay_contracts::evaluations::{
    Comparison, Dimension, EvaluationFilters, FILTER_NAMES, ListQuery, OrNone, ResultStatus, SortKey, Step,
    SummaryQuery, encode_query,
};
use assay_contracts::export::NewExport;
use assay_contracts::time::Timestamp;
use assay_contracts::validation::{BodyError, FieldError};

/// Every parameter with a valid value.
const FULL: [(&str, &str); 34] = [
    ("from", "1000"),
    ("to", "2000"),
    ("external_id", "T-1 / ü"),
    ("subject", "wrong size"),
    ("search", "size"),
    ("source", "zendesk"),
    ("ai_tool", "helpScout"),
    ("agent", "none"),
    ("involvement", "ai_only"),
    ("resolution", "not_resolved"),
    ("resolved_by", "human"),
    ("basis", "silence_only"),
    ("charge", "disputed"),
    ("charge_reason", "ESCALATED"),
    ("handoff", "completed"),
    ("band", "poor"),
    ("axis_band", "mixed"),
    ("axis_min", "1.5"),
    ("axis_max", "4.0"),
    ("resolution_accuracy_band", "good"),
    ("resolution_accuracy_min", "1.0"),
    ("resolution_accuracy_max", "5.0"),
    ("interaction_effort_band", "excellent"),
    ("interaction_effort_min", "1.0"),
    ("interaction_effort_max", "5.0"),
    ("handoff_smoothness_band", "poor"),
    ("handoff_smoothness_min", "1.0"),
    ("handoff_smoothness_max", "5.0"),
    ("confidence_min", "0.25"),
    ("confidence_max", "0.75"),
    ("language", "und"),
    ("flag", "MIXED_AUTHORS"),
    ("scorer", "builtin"),
    ("status", "scored"),
];

fn error_names(pairs: &[(&str, &str)]) -> Vec<String> {
    names(EvaluationFilters::parse(pairs.iter().copied()).unwrap_err())
}

fn names(errors: Vec<FieldError>) -> Vec<String> {
    errors.into_iter().map(|error| error.pointer).collect()
}

#[test]
fn canonical_query_parses_to_the_same_filters() {
    assert_eq!(FULL.map(|(name, _)| name), FILTER_NAMES);
    let filters = EvaluationFilters::parse(FULL).unwrap();
    assert_eq!(filters.to_pairs(), FULL.map(|(name, value)| (name, value.to_owned())));
    assert_eq!(EvaluationFilters::parse(filters.to_pairs()), Ok(filters.clone()));
    assert!(
        filters
            .to_query()
            .starts_with("from=1000&to=2000&external_id=T-1%20%2F%20%C3%BC&subject=wrong%20size&")
    );
    let json = serde_json::to_value(&filters).unwrap();
    assert_eq!(serde_json::from_value::<EvaluationFilters>(json).unwrap(), filters);
}

#[test]
fn repeated_values_are_sorted_and_kept_once() {
    let pairs = [
        ("band", "poor"),
        ("ai_tool", "none"),
        ("band", "excellent"),
        ("ai_tool", "front"),
        ("band", "poor"),
    ];
    let filters = EvaluationFilters::parse(pairs).unwrap();
    assert_eq!(filters.band, [AxisBand::Excellent, AxisBand::Poor]);
    assert!(filters.ai_tool.contains(&OrNone::None) && filters.ai_tool.len() == 2);
    let other = EvaluationFilters::parse(pairs.into_iter().rev()).unwrap();
    assert_eq!(filters.to_query(), other.to_query());
}

#[test]
fn every_error_is_reported_by_parameter() {
    let pairs = [
        ("colour", "red"),
        ("from", "2026-01-01"),
        ("to", "1"),
        ("to", "2"),
        ("charge", "Disputed"),
        ("axis_min", "5.1"),
        ("confidence_max", "0.555"),
        ("agent", "returns-bot"),
        ("language", "EN"),
        ("subject", "…"),
        ("external_id", ""),
        ("source", "a\0b"),
    ];
    let mut found = error_names(&pairs);
    found.sort();
    let mut expected: Vec<&str> = pairs.iter().map(|(name, _)| *name).collect();
    expected.sort_unstable();
    expected.dedup();
    assert_eq!(found, expected);
}

#[test]
fn contradictory_filters_are_refused() {
    let cases: [(&[(&str, &str)], &str); 15] = [
        (&[("from", "2"), ("to", "1")], "from"),
        (&[("axis_min", "4.0"), ("axis_max", "3.9")], "axis_min"),
        (&[("handoff_smoothness_min", "4.0"), ("handoff_smoothness_max", "3.9")], "handoff_smoothness_min"),
        (&[("axis_band", "poor"), ("axis_min", "2.5")], "axis_band"),
        (
            &[
                ("interaction_effort_band", "mixed"),
                ("interaction_effort_band", "good"),
                ("interaction_effort_max", "2.4"),
            ],
            "interaction_effort_band",
        ),
        (&[("confidence_min", "0.5"), ("confidence_max", "0.4")], "confidence_min"),
        (&[("status", "failed"), ("charge", "disputed")], "charge"),
        (&[("status", "not_applicable"), ("interaction_effort_max", "3")], "interaction_effort_max"),
        (&[("status", "not_applicable"), ("band", "good")], "band"),
        (&[("involvement", "no_ai"), ("ai_tool", "front")], "ai_tool"),
        (&[("involvement", "no_ai"), ("axis_min", "3")], "axis_min"),
        (&[("involvement", "no_ai"), ("status", "scored")], "status"),
        (&[("involvement", "no_ai"), ("status", "scored"), ("status", "failed")], "status"),
        (&[("involvement", "no_ai"), ("charge", "disputed")], "charge"),
        (&[("involvement", "no_ai"), ("agent", "0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11")], "agent"),
    ];
    for (pairs, name) in cases {
        assert_eq!(error_names(pairs), [name], "{pairs:?}");
    }
    for fine in [
        vec![("from", "1"), ("to", "1")],
        vec![("axis_min", "4.0"), ("axis_max", "4.0")],
        vec![("axis_band", "poor"), ("axis_band", "mixed"), ("axis_min", "2.5"), ("axis_max", "2.5")],
        // The band of a conversation is not only that of its score.
        vec![("band", "mixed"), ("axis_min", "4.5")],
        vec![("status", "not_applicable"), ("status", "scored"), ("band", "good")],
        vec![("involvement", "no_ai"), ("ai_tool", "none"), ("ai_tool", "front")],
        vec![("involvement", "no_ai"), ("involvement", "ai_only"), ("axis_min", "3")],
        vec![("involvement", "no_ai"), ("status", "scored"), ("status", "not_applicable")],
        vec![("involvement", "no_ai"), ("involvement", "ai_only"), ("status", "scored")],
        vec![("involvement", "no_ai"), ("charge", "not_applicable"), ("charge", "disputed")],
    ] {
        assert!(EvaluationFilters::parse(fine.clone()).is_ok(), "{fine:?}");
    }
}

#[test]
fn more_than_fifty_values_are_refused() {
    let many = |count: usize| (0..count).map(|number| ("source", number.to_string()));
    assert!(EvaluationFilters::parse(many(50)).is_ok());
    assert_eq!(names(EvaluationFilters::parse(many(51)).unwrap_err()), ["source"]);
}

#[test]
fn list_query_reads_order_and_page_and_omits_defaults() {
    let query = ListQuery::parse([("sort", "-axis"), ("limit", "100"), ("charge", "review")]).unwrap();
    assert_eq!((query.sort.key, query.sort.descending, query.limit), (SortKey::Axis, true, 100));
    assert_eq!(encode_query(query.to_pairs()), "charge=review&sort=-axis&limit=100");
    let default = ListQuery::parse::<&str, &str>([]).unwrap();
    assert_eq!((default.sort.to_string().as_str(), default.limit), ("-started_at", 20));
    assert!(default.to_pairs().is_empty());
    let refused = ListQuery::parse([("sort", "subject"), ("limit", "0"), ("cursor", ""), ("by", "agent")]);
    assert_eq!(names(refused.unwrap_err()), ["sort", "cursor", "limit", "by"]);
}

/// `to` is exclusive: a period until 29 February ends with the 28th, which must also be in the period a year before.
#[test]
fn period_of_a_year_before_keeps_its_last_day() {
    let day = |year, month, day| {
        let midnight =
            chrono::NaiveDate::from_ymd_opt(year, month, day).unwrap().and_time(chrono::NaiveTime::MIN);
        midnight.and_utc().timestamp_millis()
    };
    for (from, to, expected) in [
        (day(2028, 2, 1), day(2028, 2, 29), (day(2027, 2, 1), day(2027, 3, 1))),
        (day(2028, 2, 28), day(2028, 2, 29), (day(2027, 2, 28), day(2027, 3, 1))),
        (day(2028, 2, 29), day(2028, 3, 1), (day(2027, 2, 28), day(2027, 3, 1))),
        (day(2025, 3, 1), day(2025, 4, 1), (day(2024, 3, 1), day(2024, 4, 1))),
        (day(2025, 2, 1), day(2025, 3, 1), (day(2024, 2, 1), day(2024, 2, 29))),
    ] {
        let (from, to) = (from.to_string(), to.to_string());
        let query = [("from", from.as_str()), ("to", to.as_str()), ("compare", "year")];
        let compared = SummaryQuery::parse(query).unwrap().compared_filters().unwrap();
        let found = (compared.from.unwrap().as_millis(), compared.to.unwrap().as_millis());
        assert_eq!(found, expected, "{from} to {to}");
    }
}

#[test]
fn summary_query_keeps_the_order_of_dimensions() {
    let pairs =
        [("from", "86400000"), ("to", "259200000"), ("by", "ai_tool"), ("by", "agent"), ("step", "week")];
    let query = SummaryQuery::parse(pairs.into_iter().chain([("compare", "previous")])).unwrap();
    assert_eq!(query.by, [Dimension::AiTool, Dimension::Agent]);
    assert_eq!((query.step, query.compare), (Some(Step::Week), Some(Comparison::Previous)));
    let compared = query.compared_filters().unwrap();
    // The two days before 2 January 1970 begin before the epoch and are clamped to it.
    assert_eq!((compared.from, compared.to), (Some(Timestamp::MIN), query.filters.from));
    let refused =
        SummaryQuery::parse([("by", "agent"), ("by", "agent"), ("by", "mood"), ("compare", "year")]);
    assert_eq!(names(refused.unwrap_err()), ["by", "by", "compare"]);
}

#[test]
fn export_takes_the_filters_of_the_list() {
    let body =
        br#"{"kind":"axis","filters":{"from":1,"charge":["disputed","review"],"band":"poor","axis_max":2.4,
                    "confidence_min":0.25,"status":null,"unknown":null},"unknown":1}"#;
    let filters = NewExport::parse(body).unwrap().filters;
    assert_eq!(filters.charge, [ChargeAssessment::Review, ChargeAssessment::Disputed]);
    assert_eq!((filters.band.len(), filters.axis_max), (1, Score::from_tenths(24)));
    assert_eq!(filters.confidence_min, Confidence::from_hundredths(25));
    assert_eq!(
        (filters.from, &filters.status),
        (Some(Timestamp::from_millis(1).unwrap()), &Vec::<ResultStatus>::new())
    );
}

#[test]
fn filter_in_a_body_is_refused_with_its_pointer() {
    let body = br#"{"kind":"axis","filters":{"charge":["paid"],"axis_min":5.5,"band":{},"from":2,"to":1}}"#;
    let Err(BodyError::Invalid(errors)) = NewExport::parse(body) else { panic!("accepted") };
    let mut found = names(errors);
    found.sort();
    assert_eq!(found, ["/filters/axis_min", "/filters/band", "/filters/charge", "/filters/from"]);
}

#[test]
fn unknown_filter_in_a_body_is_refused_by_name() {
    let body =
        br#"{"kind":"axis","filters":{"charges":["disputed"],"band":"poor","a/b":[{}],"from":1,"from":2}}"#;
    let Err(BodyError::Invalid(errors)) = NewExport::parse(body) else { panic!("accepted") };
    assert_eq!(names(errors), ["/filters/charges", "/filters/a~1b"]);
    let long = format!(r#"{{"kind":"axis","filters":{{"{}":1}}}}"#, "x".repeat(60_000));
    let Err(BodyError::Invalid(errors)) = NewExport::parse(long.as_bytes()) else { panic!("accepted") };
    assert_eq!(names(errors), [format!("/filters/{}", "x".repeat(100))]);
}
