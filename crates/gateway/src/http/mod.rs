//! The public routes.

mod agents;
mod archive;
mod assess;
mod authentication;
mod console;
mod context;
mod docs;
mod downloads;
mod evaluations;
mod examples;
mod exports;
mod filter_parameters;
mod keyless;
pub(crate) mod openapi;
mod request_body;
mod responses;
mod tickets;
mod webhook_deliveries;
mod webhooks;

use actix_web::Route;
use actix_web::dev::HttpServiceFactory;
use actix_web::middleware::from_fn;
use actix_web::web::{self, ServiceConfig};
use assay_contracts::tenant::Scope;
use assay_platform::web::resource;

pub(crate) use self::context::Gateway;
use self::keyless::limit_keyless;

pub(crate) fn configure(gateway: web::Data<Gateway>) -> impl Fn(&mut ServiceConfig) + Clone {
    move |config| {
        config
            .app_data(gateway.clone())
            .configure(conversations)
            .configure(evaluations_and_exports)
            .configure(webhooks_and_deliveries)
            .configure(downloads_and_openapi);
        if gateway.console.is_some() {
            config.configure(console_pages);
        }
        if gateway.config.docs {
            config.configure(docs_pages);
        }
    }
}

/// A resource whose requests need a key with `scope`.
fn guarded(
    path: &'static str,
    scope: Scope,
    routes: Vec<(&'static str, Route)>,
) -> impl HttpServiceFactory + 'static {
    resource(path, routes)
        .wrap(from_fn(move |request, next| authentication::authenticate(scope, request, next)))
}

/// Imports, their tickets, and the agents that take part.
fn conversations(config: &mut ServiceConfig) {
    config
        .service(guarded("/v1/assess", Scope::Assess, vec![("POST", web::post().to(assess::assess))]))
        .service(guarded("/v1/agents", Scope::Agents, vec![("POST", web::post().to(agents::create_agent))]))
        .service(guarded(
            "/v1/tickets/{id}/transcript",
            Scope::TranscriptsRead,
            vec![("GET", web::get().to(tickets::get_transcript))],
        ))
        // Scope `tickets`. Without a valid key GET answers 404, as for an unknown ticket, and DELETE 401.
        .service(
            resource(
                "/v1/tickets/{id}",
                vec![
                    ("GET", web::get().to(tickets::get_ticket)),
                    ("DELETE", web::delete().to(tickets::delete_ticket)),
                ],
            )
            .wrap(from_fn(authentication::authenticate_or_not_found)),
        );
}

/// Lists, summaries and single evaluations, and exports of them.
fn evaluations_and_exports(config: &mut ServiceConfig) {
    config
        .service(guarded(
            "/v1/evaluations/exports",
            Scope::Exports,
            vec![
                ("GET", web::get().to(exports::list_exports)),
                ("POST", web::post().to(exports::create_export)),
            ],
        ))
        .service(guarded(
            "/v1/evaluations/exports/{id}",
            Scope::Exports,
            vec![("GET", web::get().to(exports::get_export))],
        ))
        .service(guarded(
            "/v1/evaluations/exports/{id}/download",
            Scope::Exports,
            vec![("GET", web::get().to(exports::download_export))],
        ))
        .service(guarded(
            "/v1/evaluations",
            Scope::EvaluationsRead,
            vec![("GET", web::get().to(evaluations::list_evaluations))],
        ))
        .service(guarded(
            "/v1/evaluations/summary",
            Scope::EvaluationsRead,
            vec![("GET", web::get().to(evaluations::summarize_evaluations))],
        ))
        .service(guarded(
            "/v1/tickets/{id}/neighbours",
            Scope::EvaluationsRead,
            vec![("GET", web::get().to(evaluations::get_neighbours))],
        ))
        .service(guarded(
            "/v1/tickets/{id}/evaluation",
            Scope::Tickets,
            vec![("GET", web::get().to(tickets::get_evaluation))],
        ));
}

/// Webhooks and what was delivered to them.
fn webhooks_and_deliveries(config: &mut ServiceConfig) {
    config
        .service(guarded(
            "/v1/webhooks",
            Scope::Webhooks,
            vec![
                ("GET", web::get().to(webhooks::list_webhooks)),
                ("POST", web::post().to(webhooks::create_webhook)),
            ],
        ))
        .service(guarded(
            "/v1/webhooks/{id}",
            Scope::Webhooks,
            vec![
                ("GET", web::get().to(webhooks::get_webhook)),
                ("PATCH", web::patch().to(webhooks::change_webhook)),
                ("DELETE", web::delete().to(webhooks::delete_webhook)),
            ],
        ))
        .service(guarded(
            "/v1/webhooks/{id}/secret",
            Scope::Webhooks,
            vec![("GET", web::get().to(webhooks::get_webhook_secret))],
        ))
        .service(guarded(
            "/v1/webhooks/{id}/secret/rotate",
            Scope::Webhooks,
            vec![("POST", web::post().to(webhooks::rotate_webhook_secret))],
        ))
        .service(guarded(
            "/v1/webhooks/{id}/test",
            Scope::Webhooks,
            vec![("POST", web::post().to(webhook_deliveries::test_webhook))],
        ))
        .service(guarded(
            "/v1/webhooks/{id}/deliveries",
            Scope::Webhooks,
            vec![("GET", web::get().to(webhook_deliveries::list_webhook_deliveries))],
        ))
        .service(guarded(
            "/v1/webhooks/{id}/deliveries/{deliveryId}",
            Scope::Webhooks,
            vec![("GET", web::get().to(webhook_deliveries::get_webhook_delivery))],
        ))
        .service(guarded(
            "/v1/webhooks/{id}/deliveries/{deliveryId}/replay",
            Scope::Webhooks,
            vec![("POST", web::post().to(webhook_deliveries::replay_webhook_delivery))],
        ));
}

/// Routes without a key: the address of a download is signed.
fn downloads_and_openapi(config: &mut ServiceConfig) {
    config
        .service(resource(
            "/v1/downloads/{id}",
            vec![
                ("GET", web::get().to(downloads::download_file)),
                ("HEAD", web::head().to(downloads::download_file)),
            ],
        ))
        .service(
            resource("/openapi.json", vec![("GET", web::get().to(openapi::serve))])
                .wrap(from_fn(limit_keyless)),
        );
}

/// The pages of the role `console`.
fn console_pages(config: &mut ServiceConfig) {
    for path in ["/console", "/console/{page:.*}"] {
        let routes = vec![
            ("GET", web::get().to(console::forward_page)),
            ("HEAD", web::head().to(console::forward_page)),
            ("POST", web::post().to(console::forward_form)),
        ];
        config.service(resource(path, routes).wrap(from_fn(console::as_page)));
    }
}

/// The page of the API's documentation.
fn docs_pages(config: &mut ServiceConfig) {
    config
        .service(resource("/docs", vec![("GET", web::get().to(docs::redirect))]).wrap(from_fn(limit_keyless)))
        .service(
            resource("/docs/{file:.*}", vec![("GET", web::get().to(docs::file))])
                .wrap(from_fn(limit_keyless)),
        );
}
