//! The whole product from the outside: the same scenarios over the standalone and over the distributed stack.
//!
//! Each scenario is declared once and becomes two tests, `standalone::NAME` and `distributed::NAME`; what is asked of the
//! services themselves becomes the second one only, because their ports are known there. Every test starts a stack of
//! its own, with the executable that was built, and talks to it as a client does: HTTP and command line.

mod harness;
mod scenarios;

/// Makes two tests of every scenario, one for each way to run the product.
macro_rules! on_both_stacks {
    ($($(#[$attribute:meta])* $name:ident = $scenario:path,)*;
     distributed: $($inside:ident = $inside_scenario:path,)*) => {
        mod standalone {
            $($(#[$attribute])* #[test]
            fn $name() -> anyhow::Result<()> {
                crate::harness::run(crate::harness::Kind::Standalone, stringify!($name), $scenario)
            })*
        }

        mod distributed {
            $($(#[$attribute])* #[test]
            fn $name() -> anyhow::Result<()> {
                crate::harness::run(crate::harness::Kind::Distributed, stringify!($name), $scenario)
            })*
            $(#[test]
            fn $inside() -> anyhow::Result<()> {
                crate::harness::run(crate::harness::Kind::Distributed, stringify!($inside), $inside_scenario)
            })*
        }
    };
}

on_both_stacks! {
    every_rule_of_an_import_is_checked_and_a_refusal_claims_nothing = crate::scenarios::assess_rules::run,
    bodies_that_are_no_json_or_too_large_or_too_slow_are_refused = crate::scenarios::bodies::run,
    credentials_are_decided_first_and_scopes_are_kept = crate::scenarios::credentials::run,
    every_operation_hides_other_organizations_and_needs_its_key = crate::scenarios::isolation::run,
    what_is_no_operation_is_a_problem_too = crate::scenarios::http_edges::run,
    an_identity_is_imported_once_in_each_organization = crate::scenarios::identity::run,
    receipts_tickets_and_evaluations_have_their_documented_shape = crate::scenarios::tickets::run,
    agents_are_registered_once_and_usable_at_once = crate::scenarios::agents::run,
    an_idempotency_key_gives_the_first_answer_again = crate::scenarios::idempotency::run,
    exports_are_queued_listed_and_completed = crate::scenarios::exports::run,
    an_exported_file_is_fetched_through_its_signed_address = crate::scenarios::downloads::run,
    a_signed_address_opens_one_file_for_its_time = crate::scenarios::signed_addresses::run,
    strange_requests_get_a_sane_answer = crate::scenarios::strange_requests::run,
    conversations_go_in_and_scored_files_come_out = crate::scenarios::whole_path::run,
    the_import_command_reports_resumes_and_repeats_nothing = crate::scenarios::import_command::run,
    the_import_command_reads_helpdesks_and_shortens_what_is_too_long = crate::scenarios::import_formats::run,
    the_export_and_tickets_commands_give_out_what_was_scored = crate::scenarios::export_command::run,
    limits_are_kept_and_told = crate::scenarios::limits::run,
    a_judge_scores_and_its_absence_is_visible = crate::scenarios::judge::run,
    a_deleted_ticket_is_gone_everywhere_and_its_identity_stays_used = crate::scenarios::deletion::run,
    metrics_tell_what_happened_and_are_all_documented = crate::scenarios::metrics::run,
    one_trace_leads_from_the_import_to_the_row_of_the_export = crate::scenarios::traces::run,
    the_commands_of_the_readme_do_what_it_says = crate::scenarios::readme::run,
    a_browser_shows_the_reference_of_the_api = crate::scenarios::reference_page::run,
    personal_data_is_in_no_log = crate::scenarios::personal_data::run,
    the_retention_command_sets_and_shows_periods = crate::scenarios::retention_command::run,
    a_small_flood_stops_nobody_who_behaves_well = crate::scenarios::flood::small,
    /// `make flood`.
    #[ignore = "takes minutes: make flood"]
    flood = crate::scenarios::flood::full,
    a_process_that_is_told_to_stop_answers_what_it_received_and_loses_nothing = crate::scenarios::shutdown::under_load,
    a_process_that_is_told_to_stop_twice_ends_at_once = crate::scenarios::shutdown::twice,
    what_was_accepted_survives_a_crash_and_is_evaluated_once = crate::scenarios::durability::run,

    ; distributed:
    services_refuse_every_token_that_was_not_made_for_them = crate::scenarios::service_tokens::run,
    imports_are_accepted_while_the_broker_is_away_and_evaluated_when_it_is_back = crate::scenarios::outages::broker_away,
    a_service_that_hangs_takes_no_other_down = crate::scenarios::outages::service_hangs,
    a_service_that_is_dead_is_refused_at_once_and_used_again_when_it_is_back = crate::scenarios::outages::service_dead,
}
