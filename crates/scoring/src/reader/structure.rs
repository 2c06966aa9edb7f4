//! Structural features: who wrote how much and when, and repetitions. Only sums, quotients and square roots, so that the
//! result has the same bytes on every machine.

use super::selection::SelectedMessage;
use crate::transcript::{Role, Transcript};

/// Number of structural features.
pub(crate) const STRUCTURAL_FEATURES: usize = 20;

/// Thresholds of waits, in milliseconds.
const WAITS: [i64; 5] = [2 * 60_000, 15 * 60_000, 3_600_000, 8 * 3_600_000, 2 * 86_400_000];
const ROLES: [Role; 6] = [Role::Customer, Role::Ai, Role::Human, Role::Mixed, Role::Note, Role::System];

/// Whether items that the customer never saw are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HiddenItems {
    /// Notes and events count.
    Included,
    /// Notes and events do not count.
    Excluded,
}

/// The structural features, in a fixed order.
pub(crate) fn structural_features(
    transcript: &Transcript<'_>,
    selection: &[SelectedMessage],
    hidden_items: HiddenItems,
) -> [f32; STRUCTURAL_FEATURES] {
    let selected = |role: Role| selection.iter().filter(|selected| selected.role == role).count();
    let submitted = |role: Role| transcript.items.iter().filter(|item| item.role == role).count();
    let count = |role: Role| match role {
        Role::Note | Role::System if hidden_items == HiddenItems::Excluded => 0,
        Role::Note | Role::System => submitted(role),
        _ => selected(role),
    };
    let speaks_last = |role: Role| flag(selection.last().is_some_and(|selected| selected.role == role));
    let waits = Waits::of(transcript, selection);
    let of_side = |is_in: fn(Role) -> bool| selection.iter().filter(move |selected| is_in(selected.role));
    let is_customer = |role: Role| role == Role::Customer;
    let words = |is_in: fn(Role) -> bool| -> u32 {
        let items = of_side(is_in).filter_map(|selected| transcript.item(selected.item));
        items.map(|item| item.word_count).sum()
    };
    let max_similarity = |is_in: fn(Role) -> bool| -> f32 {
        of_side(is_in).map(|selected| transcript.similarity(selected.item)).fold(0.0, f64::max) as f32
    };
    let values = ROLES
        .map(|role| root(count(role) as u32))
        .into_iter()
        .chain([speaks_last(Role::Customer), speaks_last(Role::Ai), speaks_last(Role::Human)])
        .chain([
            flag(selected(Role::Human) > 0),
            flag(selected(Role::Ai) > 0),
            flag(selected(Role::Customer) > 0),
        ])
        .chain([level(waits.total), level(waits.longest), level(waits.for_human)])
        .chain([max_similarity(is_customer), max_similarity(Role::is_answer)])
        // 64 words of the customer and 144 words of answers give 1.
        .chain([root(words(is_customer)) / 8.0, root(words(Role::is_answer)) / 12.0])
        .chain([flag(transcript.subject().is_some())]);
    let mut features = [0.0; STRUCTURAL_FEATURES];
    for (feature, value) in features.iter_mut().zip(values) {
        *feature = value;
    }
    features
}

/// Waits between the selected messages, in milliseconds.
#[derive(Debug, Default)]
struct Waits {
    total: i64,
    longest: i64,
    for_human: i64,
}

impl Waits {
    fn of(transcript: &Transcript<'_>, selection: &[SelectedMessage]) -> Self {
        let mut waits = Self::default();
        let mut previous: Option<i64> = None;
        let mut human_came = false;
        for item in selection.iter().filter_map(|selected| transcript.item(selected.item)) {
            let sent_at = item.message.timestamp.as_millis();
            let waited = previous.map_or(0, |previous| sent_at - previous);
            previous = Some(sent_at);
            waits.total += waited;
            waits.longest = waits.longest.max(waited);
            if item.role == Role::Human && !human_came {
                human_came = true;
                waits.for_human = waited;
            }
        }
        waits
    }
}

const fn flag(holds: bool) -> f32 {
    if holds { 1.0 } else { 0.0 }
}

fn root(count: u32) -> f32 {
    (count.min(1_000_000) as f32).sqrt()
}

/// Number of thresholds that a wait reaches.
fn level(millis: i64) -> f32 {
    WAITS.iter().filter(|wait| millis >= **wait).count() as f32
}
