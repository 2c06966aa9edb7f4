//! End-to-end tests: the same scenarios on the standalone and on the distributed stack, which they use as a client does: by
//! HTTP and the command line.
//!
//! Most scenarios need only a separate organization. These share one stack of each kind: they are the cases of the two tests
//! `standalone::shared` and `distributed::shared`. A scenario that stops processes or changes settings gets a private stack
//! and becomes two tests, `standalone::NAME` and `distributed::NAME`. Scenarios that call the services directly run only on
//! the distributed stack, where the services have addresses. The console is tested in a browser, on the standalone
//! (`console`).

mod browser;
mod console;
mod harness;
mod scenarios;

/// Defines the tests of all scenarios.
macro_rules! scenarios {
    (shared { $($shared:ident = $shared_path:path,)* }
     distributed shared { $($shared_distributed:ident = $shared_distributed_path:path,)* }
     private { $($(#[$attribute:meta])* $private:ident = $private_path:path,)* }
     distributed private { $($private_distributed:ident = $private_distributed_path:path,)* }) => {
        const SHARED: &[crate::harness::Scenario] =
            &[$((stringify!($shared), |stack| crate::harness::block_on($shared_path(stack))),)*];
        const SHARED_DISTRIBUTED: &[crate::harness::Scenario] =
            &[$((stringify!($shared_distributed), |stack| crate::harness::block_on($shared_distributed_path(stack))),)*];

        mod standalone {
            use crate::harness::{Kind, run_private, run_shared};

            #[test]
            fn shared() -> anyhow::Result<()> {
                run_shared(Kind::Standalone, super::SHARED)
            }

            #[test]
            fn console() -> anyhow::Result<()> {
                crate::console::run()
            }

            /// `make screenshots`.
            #[test]
            #[ignore = "takes screenshots and checks nothing: make screenshots"]
            fn screenshots() -> anyhow::Result<()> {
                crate::console::take_screenshots()
            }

            $($(#[$attribute])* #[test]
            fn $private() -> anyhow::Result<()> {
                run_private(Kind::Standalone, stringify!($private), $private_path)
            })*
        }

        mod distributed {
            use crate::harness::{Kind, run_private, run_shared};

            #[test]
            fn shared() -> anyhow::Result<()> {
                run_shared(Kind::Distributed, &[super::SHARED_DISTRIBUTED, super::SHARED].concat())
            }

            $($(#[$attribute])* #[test]
            fn $private() -> anyhow::Result<()> {
                run_private(Kind::Distributed, stringify!($private), $private_path)
            })*
            $(#[test]
            fn $private_distributed() -> anyhow::Result<()> {
                run_private(Kind::Distributed, stringify!($private_distributed), $private_distributed_path)
            })*
        }
    };
}

// Long scenarios first, because they run side by side.
scenarios! {
    shared {
        import_command_converts_helpdesk_formats = crate::scenarios::import_formats::run,
        import_command_reports_and_resumes = crate::scenarios::import_command::run,
        imported_conversations_appear_in_export_files = crate::scenarios::whole_path::run,
        exports_are_queued_and_completed = crate::scenarios::exports::run,
        webhooks_retry_replay_rotate_and_end = crate::scenarios::webhooks::retries,
        browser_shows_the_api_reference = crate::scenarios::reference_page::run,
        import_rules_are_enforced_without_side_effects = crate::scenarios::assess_rules::run,
        malformed_large_and_slow_bodies_are_refused = crate::scenarios::bodies::run,
        keys_are_revoked_and_listed = crate::scenarios::credentials::run,
        every_operation_isolates_organizations = crate::scenarios::isolation::run,
        console_isolates_organizations = crate::scenarios::console_isolation::run,
        deleted_ticket_is_gone_and_its_identity_stays_used = crate::scenarios::deletion::run,
        unknown_routes_and_methods_are_problems = crate::scenarios::http_edges::run,
        identity_is_imported_once = crate::scenarios::identity::run,
        unchanged_lists_and_summaries_are_not_sent_again = crate::scenarios::summaries::run,
        transcript_has_the_items_of_its_import = crate::scenarios::tickets::transcript,
        receipts_tickets_and_evaluations_match_the_documentation = crate::scenarios::tickets::run,
        agents_are_unique_and_usable_immediately = crate::scenarios::agents::run,
        idempotency_key_replays_the_first_response = crate::scenarios::idempotency::run,
        export_file_is_downloaded_by_its_signed_url = crate::scenarios::downloads::run,
        malformed_requests_get_valid_responses = crate::scenarios::strange_requests::run,
        export_and_tickets_commands_show_scores = crate::scenarios::export_command::run,
        readme_commands_work = crate::scenarios::readme::run,
        retention_command_sets_and_shows_periods = crate::scenarios::retention_command::run,
        webhooks_notify_subscribers_with_signatures = crate::scenarios::webhooks::notifications,
        webhooks_refuse_private_networks = crate::scenarios::webhooks::refusals,
    }
    distributed shared {
        services_refuse_forged_tokens = crate::scenarios::service_tokens::run,
    }
    private {
        given_up_conversation_is_failed_until_retried = crate::scenarios::given_up::run,
        hostile_bodies_and_subjects_cost_bounded_memory = crate::scenarios::hostile_memory::run,
        signed_url_opens_one_file_until_it_expires = crate::scenarios::signed_addresses::run,
        rate_and_concurrency_limits_are_enforced = crate::scenarios::limits::run,
        judge_scores_and_fallback_is_visible = crate::scenarios::judge::run,
        metrics_are_counted_and_documented = crate::scenarios::metrics::run,
        one_trace_spans_import_to_export_row = crate::scenarios::traces::run,
        personal_data_is_not_logged = crate::scenarios::personal_data::run,
        small_flood_does_not_affect_well_behaved_clients = crate::scenarios::flood::small,
        /// `make flood`.
        #[ignore = "takes minutes: make flood"]
        flood = crate::scenarios::flood::full,
        small_organization_does_not_wait_for_the_backlog_of_another = crate::scenarios::fairness::order_of_turns,
        /// `make fairness`.
        #[ignore = "takes half an hour: make fairness"]
        fairness = crate::scenarios::fairness::latency_beside_backlog,
        /// `make fairness`.
        #[ignore = "takes minutes: make fairness"]
        fairness_beside_imports = crate::scenarios::fairness::latency_beside_imports,
        graceful_shutdown_answers_received_requests = crate::scenarios::shutdown::under_load,
        second_stop_signal_ends_the_process_at_once = crate::scenarios::shutdown::second_signal,
        accepted_conversations_and_deletions_survive_a_crash = crate::scenarios::durability::run,
        killed_workers_leave_no_export_file = crate::scenarios::export_files::run,
        webhooks_survive_a_receiver_outage_and_a_crash = crate::scenarios::webhooks::receiver_outage,
        webhooks_can_be_turned_off = crate::scenarios::webhooks::turned_off,
    }
    distributed private {
        service_secret_is_changed_without_refused_calls = crate::scenarios::secret_rotation::run,
        imports_are_accepted_during_a_broker_outage = crate::scenarios::outages::broker_outage,
        hanging_service_does_not_affect_others = crate::scenarios::outages::service_hangs,
        dead_service_fails_fast_and_recovers = crate::scenarios::outages::service_dead,
    }
}
