//! The internal HTTP API.

use actix_web::middleware::from_fn;
use actix_web::web::{self, Data, Path, ServiceConfig};
use actix_web::{HttpResponse, Responder};
use assay_contracts::ids::TicketId;
use assay_contracts::internal::Progress;
use assay_contracts::problem::ProblemCode;
use assay_contracts::tenant::Scope;
use assay_platform::web::{Caller, ServiceAuth, WebError, resource, service_auth_middleware};

use crate::app::read_evaluation;
use crate::store::EvaluationStore;

pub(crate) fn configure(
    store: EvaluationStore,
    auth: ServiceAuth,
) -> impl Fn(&mut ServiceConfig) + Clone + Send {
    let (store, auth) = (Data::new(store), Data::new(auth));
    move |config| {
        config.app_data(store.clone()).app_data(auth.clone()).service(
            resource("/internal/v1/tickets/{id}/evaluation", vec![("GET", web::get().to(get_evaluation))])
                .wrap(from_fn(service_auth_middleware)),
        );
        config.service(
            resource("/internal/v1/progress", vec![("GET", web::get().to(get_progress))])
                .wrap(from_fn(service_auth_middleware)),
        );
    }
}

async fn get_evaluation(
    id: Path<String>,
    store: Data<EvaluationStore>,
    caller: Caller,
) -> Result<impl Responder, WebError> {
    let tenant = caller.tenant(Scope::Tickets)?;
    let not_found = || WebError::new(ProblemCode::TicketNotFound, "the ticket has no evaluation");
    let id: TicketId = id.parse().map_err(|_| not_found())?;
    let evaluation = read_evaluation(&store, tenant.organization_id, id).await?;
    evaluation.map(|evaluation| HttpResponse::Ok().json(evaluation)).ok_or_else(not_found)
}

/// The latest evaluation sequence of an organization: export asks for it, and export-worker waits until the read model has reached it.
async fn get_progress(store: Data<EvaluationStore>, caller: Caller) -> Result<impl Responder, WebError> {
    let evaluated = store.evaluation_count(caller.organization()?).await?;
    Ok(HttpResponse::Ok().json(Progress { evaluated }))
}
