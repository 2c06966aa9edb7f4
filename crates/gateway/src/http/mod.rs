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
mod keyed_request;
mod keyless;
pub(crate) mod openapi;
mod request_body;
mod responses;
mod tickets;
mod webhook_deliveries;
mod webhooks;

use actix_web::Route;
use actix_web::dev::HttpServiceFactory;
use actix_web::http::Method;
use actix_web::middleware::from_fn;
use actix_web::web::{self, ServiceConfig};
use assay_contracts::tenant::Scope;
use assay_platform::web::{RefusedHeadPage, resource};

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

/// Adds a resource whose requests need a key with the scope: its methods and their handlers.
macro_rules! guarded {
    ($config:ident, $path:literal, $scope:ident, [$($method:ident $handler:path),+]) => {
        $config.service(guarded(
            $path,
            Scope::$scope,
            vec![$((stringify!($method), web::method(Method::$method).to($handler))),+],
        ))
    };
}

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
    guarded!(config, "/v1/assess", Assess, [POST assess::assess]);
    guarded!(config, "/v1/agents", Agents, [POST agents::create_agent]);
    guarded!(config, "/v1/tickets/{id}/transcript", TranscriptsRead, [GET tickets::get_transcript]);
    // Scope `tickets`. Without a valid key GET answers 404, as for an unknown ticket, and DELETE 401.
    config.service(
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
    guarded!(config, "/v1/evaluations/exports", Exports, [
        GET exports::list_exports, POST exports::create_export
    ]);
    guarded!(config, "/v1/evaluations/exports/{id}", Exports, [GET exports::get_export]);
    guarded!(config, "/v1/evaluations/exports/{id}/download", Exports, [GET exports::download_export]);
    guarded!(config, "/v1/evaluations", EvaluationsRead, [GET evaluations::list_evaluations]);
    guarded!(config, "/v1/evaluations/summary", EvaluationsRead, [GET evaluations::summarize_evaluations]);
    guarded!(config, "/v1/tickets/{id}/neighbours", EvaluationsRead, [GET evaluations::get_neighbours]);
    guarded!(config, "/v1/tickets/{id}/evaluation", Tickets, [GET tickets::get_evaluation]);
}

fn webhooks_and_deliveries(config: &mut ServiceConfig) {
    guarded!(config, "/v1/webhooks", Webhooks, [GET webhooks::list_webhooks, POST webhooks::create_webhook]);
    guarded!(config, "/v1/webhooks/{id}", Webhooks, [
        GET webhooks::get_webhook, PATCH webhooks::change_webhook, DELETE webhooks::delete_webhook
    ]);
    guarded!(config, "/v1/webhooks/{id}/secret", Webhooks, [GET webhooks::get_webhook_secret]);
    guarded!(config, "/v1/webhooks/{id}/secret/rotate", Webhooks, [POST webhooks::rotate_webhook_secret]);
    guarded!(config, "/v1/webhooks/{id}/test", Webhooks, [POST webhook_deliveries::test_webhook]);
    guarded!(config, "/v1/webhooks/{id}/deliveries", Webhooks, [
        GET webhook_deliveries::list_webhook_deliveries
    ]);
    guarded!(config, "/v1/webhooks/{id}/deliveries/{deliveryId}", Webhooks, [
        GET webhook_deliveries::get_webhook_delivery
    ]);
    guarded!(config, "/v1/webhooks/{id}/deliveries/{deliveryId}/replay", Webhooks, [
        POST webhook_deliveries::replay_webhook_delivery
    ]);
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

fn console_pages(config: &mut ServiceConfig) {
    config.app_data(RefusedHeadPage(console::page_of_refused_head));
    for path in ["/console", "/console/{page:.*}"] {
        let routes = vec![
            ("GET", web::get().to(console::forward_page)),
            ("HEAD", web::head().to(console::forward_page)),
            ("POST", web::post().to(console::forward_form)),
        ];
        config.service(resource(path, routes).wrap(from_fn(console::as_page)));
    }
}

fn docs_pages(config: &mut ServiceConfig) {
    config
        .service(resource("/docs", vec![("GET", web::get().to(docs::redirect))]).wrap(from_fn(limit_keyless)))
        .service(
            resource("/docs/{file:.*}", vec![("GET", web::get().to(docs::file))])
                .wrap(from_fn(limit_keyless)),
        );
}
