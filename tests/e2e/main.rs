//! End-to-end tests: the same scenarios on the standalone and on the distributed stack.
//!
//! Each scenario is declared once and becomes two tests, `standalone::NAME` and `distributed::NAME`. Scenarios that call
//! the services directly run only on the distributed stack, where the ports are known. Every test starts its own stack and
//! uses it as a client does: by HTTP and the command line.

mod harness;
mod scenarios;

/// Defines two tests for every scenario, one for each kind of stack.
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
    import_rules_are_enforced_without_side_effects = crate::scenarios::assess_rules::run,
    malformed_large_and_slow_bodies_are_refused = crate::scenarios::bodies::run,
    hostile_bodies_and_subjects_cost_bounded_memory = crate::scenarios::hostile_memory::run,
    credentials_are_checked_first_and_scopes_enforced = crate::scenarios::credentials::run,
    every_operation_isolates_organizations = crate::scenarios::isolation::run,
    unknown_routes_and_methods_are_problems = crate::scenarios::http_edges::run,
    identity_is_imported_once_per_organization = crate::scenarios::identity::run,
    receipts_tickets_and_evaluations_match_the_documentation = crate::scenarios::tickets::run,
    agents_are_unique_and_usable_immediately = crate::scenarios::agents::run,
    idempotency_key_replays_the_first_response = crate::scenarios::idempotency::run,
    exports_are_queued_listed_and_completed = crate::scenarios::exports::run,
    export_file_is_downloaded_by_its_signed_url = crate::scenarios::downloads::run,
    signed_url_opens_one_file_until_it_expires = crate::scenarios::signed_addresses::run,
    malformed_requests_get_valid_responses = crate::scenarios::strange_requests::run,
    imported_conversations_appear_in_export_files = crate::scenarios::whole_path::run,
    import_command_reports_and_resumes = crate::scenarios::import_command::run,
    import_command_converts_helpdesk_formats = crate::scenarios::import_formats::run,
    export_and_tickets_commands_show_scores = crate::scenarios::export_command::run,
    rate_and_concurrency_limits_are_enforced = crate::scenarios::limits::run,
    judge_scores_and_fallback_is_visible = crate::scenarios::judge::run,
    deleted_ticket_is_gone_and_its_identity_stays_used = crate::scenarios::deletion::run,
    metrics_are_counted_and_documented = crate::scenarios::metrics::run,
    one_trace_spans_import_to_export_row = crate::scenarios::traces::run,
    readme_commands_work = crate::scenarios::readme::run,
    browser_shows_the_api_reference = crate::scenarios::reference_page::run,
    personal_data_is_not_logged = crate::scenarios::personal_data::run,
    retention_command_sets_and_shows_periods = crate::scenarios::retention_command::run,
    small_flood_does_not_affect_well_behaved_clients = crate::scenarios::flood::small,
    /// `make flood`.
    #[ignore = "takes minutes: make flood"]
    flood = crate::scenarios::flood::full,
    graceful_shutdown_answers_received_requests = crate::scenarios::shutdown::under_load,
    second_stop_signal_ends_the_process_at_once = crate::scenarios::shutdown::twice,
    accepted_conversations_survive_a_crash = crate::scenarios::durability::run,
    webhooks_notify_subscribers_with_signatures = crate::scenarios::webhooks::notifications,
    webhooks_retry_replay_rotate_and_end = crate::scenarios::webhooks::retries,
    webhooks_survive_a_receiver_outage_and_a_crash = crate::scenarios::webhooks::receiver_outage,
    webhooks_refuse_private_networks = crate::scenarios::webhooks::refusals,
    webhooks_can_be_turned_off = crate::scenarios::webhooks::turned_off,

    ; distributed:
    services_refuse_forged_tokens = crate::scenarios::service_tokens::run,
    imports_are_accepted_during_a_broker_outage = crate::scenarios::outages::broker_outage,
    hanging_service_does_not_affect_others = crate::scenarios::outages::service_hangs,
    dead_service_fails_fast_and_recovers = crate::scenarios::outages::service_dead,
}
