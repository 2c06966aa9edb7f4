//! Checks the rules of the console's design in a real browser: one rule after the other, in one browser on one standalone.

mod corpus;
mod hostile;
mod pages;
mod rules;
mod screenshots;
mod states;
mod visit;

use anyhow::Result;

use self::visit::{Rule, run_rules};

macro_rules! rules {
    ($($name:ident = $path:path,)*) => {
        &[$((stringify!($name), |visit| Box::pin($path(visit))),)*]
    };
}

/// The first rule needs an organization without conversations; the last ones add hostile conversations.
const RULES: &[Rule] = rules! {
    first_disputed_quote_takes_a_new_user_less_than_a_minute = rules::first_look::run,
    one_time_address_signs_in_once_and_ends_with_the_session = rules::sign_in::run,
    url_is_the_state_of_a_page = rules::url_state::run,
    numbers_open_rows_that_add_up_to_them = rules::numbers::run,
    next_and_previous_follow_filter_and_order = rules::neighbours::run,
    refused_filter_is_answered_beside_its_field = rules::refused_filter::run,
    partial_update_keeps_focus_and_says_what_changed = rules::partial_updates::run,
    shortcuts_move_and_never_fire_while_typing = rules::shortcuts::run,
    keyboard_alone_leads_from_sign_in_to_the_exported_file = rules::walks::by_keyboard,
    everything_works_without_scripts = rules::walks::without_scripts,
    webhooks_are_managed_without_scripts = rules::webhooks::run,
    listed_session_is_ended_without_scripts = rules::sessions::run,
    long_form_outlives_its_session_without_scripts = rules::sessions::long_form,
    address_and_id_of_a_conversation_are_copied = rules::copies::run,
    browser_stores_nothing_of_a_transcript = rules::storage::run,
    times_are_in_the_zone_of_the_viewer = rules::times::run,
    charts_have_tables_of_their_values = rules::charts::run,
    pages_fit_360_pixels = rules::widths::run,
    printed_pages_are_dark_on_white = rules::print::run,
    axe_finds_nothing_serious_on_any_page = rules::accessibility::run,
    pages_weigh_at_most_100_kb_at_first_and_30_kb_later = rules::weight::run,
    violation_of_the_content_security_policy_is_noticed = rules::policy::run,
    hostile_transcripts_are_only_text = rules::hostile_texts::run,
    large_conversation_is_shown_in_parts = rules::hostile_texts::large,
};

/// Checks all rules.
pub fn run() -> Result<()> {
    run_rules(RULES)
}

/// `make screenshots`: every page in both themes and two widths.
pub fn take_screenshots() -> Result<()> {
    run_rules(rules! { screenshots = screenshots::run, })
}
