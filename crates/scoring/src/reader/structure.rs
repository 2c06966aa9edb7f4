//! Facts about a conversation that its words do not say: who wrote how much and when, and how often the same was said.
//! Sums, square roots and one quotient only, so that the same bytes come out everywhere.

use super::view::Placed;
use crate::transcript::{Role, Transcript};

/// How many facts there are.
pub(crate) const FACTS: usize = 20;

/// Waits that are told apart, in milliseconds.
const WAITS: [i64; 5] = [2 * 60_000, 15 * 60_000, 3_600_000, 8 * 3_600_000, 2 * 86_400_000];
const ROLES: [Role; 6] = [Role::Customer, Role::Ai, Role::Human, Role::Mixed, Role::Note, Role::System];

/// Whether facts that the customer never saw count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unseen {
    /// Notes and events are counted.
    Counts,
    /// They are not, so that they move nothing.
    IsLeftOut,
}

/// The facts, in a fixed order.
pub(crate) fn facts(transcript: &Transcript<'_>, read: &[Placed], unseen: Unseen) -> [f32; FACTS] {
    let placed = |role: Role| read.iter().filter(|placed| placed.role == role).count();
    let submitted = |role: Role| transcript.items.iter().filter(|item| item.role == role).count();
    let count = |role: Role| match role {
        Role::Note | Role::System if unseen == Unseen::IsLeftOut => 0,
        Role::Note | Role::System => submitted(role),
        _ => placed(role),
    };
    let speaks_last = |role: Role| flag(read.last().is_some_and(|placed| placed.role == role));
    let waits = Waits::of(transcript, read);
    let words = |answers: bool| -> u32 {
        let items =
            read.iter().filter(|placed| placed.role.answers() == answers && placed.role != Role::Mixed);
        items.filter_map(|placed| transcript.item(placed.item)).map(|item| item.words).sum()
    };
    let most = |answers: bool| -> f32 {
        let side =
            read.iter().filter(|placed| placed.role.answers() == answers && placed.role != Role::Mixed);
        side.map(|placed| transcript.likeness(placed.item)).fold(0.0, f64::max) as f32
    };
    let values = ROLES
        .map(|role| root(count(role) as u32))
        .into_iter()
        .chain([speaks_last(Role::Customer), speaks_last(Role::Ai), speaks_last(Role::Human)])
        .chain([flag(placed(Role::Human) > 0), flag(placed(Role::Ai) > 0), flag(placed(Role::Customer) > 0)])
        .chain([level(waits.whole), level(waits.longest), level(waits.for_human)])
        .chain([most(false), most(true)])
        .chain([root(words(false)) / 8.0, root(words(true)) / 12.0])
        .chain([flag(transcript.subject().is_some())]);
    let mut facts = [0.0; FACTS];
    for (fact, value) in facts.iter_mut().zip(values) {
        *fact = value;
    }
    facts
}

/// Times between the messages that are read, in milliseconds.
#[derive(Debug, Default)]
struct Waits {
    whole: i64,
    longest: i64,
    for_human: i64,
}

impl Waits {
    fn of(transcript: &Transcript<'_>, read: &[Placed]) -> Self {
        let mut waits = Self::default();
        let mut before: Option<i64> = None;
        let mut human_came = false;
        for item in read.iter().filter_map(|placed| transcript.item(placed.item)) {
            let at = item.message.timestamp.as_millis();
            let waited = before.map_or(0, |before| at - before);
            before = Some(at);
            waits.whole += waited;
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

/// How many of the waits a time reaches.
fn level(millis: i64) -> f32 {
    WAITS.iter().filter(|wait| millis >= **wait).count() as f32
}
