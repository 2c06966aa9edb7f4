//! The read side: lists, summaries and transcripts of evaluated conversations, and the filters that they share
//! with exports.
//!
//! A filter is a set of query parameters. Repeated parameters mean "or", different ones "and". The URL of a console page
//! has its filters, so equal filters have one canonical query ([`EvaluationFilters::to_query`]).

mod body;
mod count;
mod filters;
mod item;
mod list;
mod or_none;
mod query;
mod render;
mod summary;
mod summary_query;
mod transcript;

pub use self::body::read_filters;
pub use self::count::CountQuery;
pub use self::filters::{EvaluationFilters, FILTER_NAMES, ResultStatus, ScoreFilter};
pub use self::item::{EvaluationItem, ItemEvaluation, ItemScores, ItemTicket};
pub use self::list::{
    EvaluationPage, ListQuery, MAX_COUNTED, MAX_POSITION, Neighbours, NeighboursQuery, Sort, SortKey, Total,
};
pub use self::or_none::OrNone;
pub use self::query::{MAX_VALUES, QueryReader, words_of};
pub use self::render::{Pairs, encode_query};
pub use self::summary::{
    BandCounts, Breakdown, ChargeCounts, Coverage, DistributionStep, Distributions, Group, Means, Measures,
    Period, PeriodSummary, ReasonCount, SeriesPoint, Summary,
};
pub use self::summary_query::{
    BreakdownDimension as Dimension, Comparison, MAX_DIMENSIONS, MAX_POINTS, Step, SummaryQuery,
};
pub use self::transcript::{TicketTranscript, TranscriptAuthor, TranscriptDocument, TranscriptMessage};
