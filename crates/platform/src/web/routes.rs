//! Routing helpers whose errors are problem objects: 405, 404 and invalid queries.

use std::collections::BTreeMap;

use actix_web::{HttpRequest, Resource, Route, web};
use assay_contracts::problem::{Problem, ProblemCode};

use super::error::WebError;

/// A resource with its routes. Any other method gets 405 with `Allow`.
pub fn resource(path: &str, routes: Vec<(&'static str, Route)>) -> Resource {
    let allow = routes.iter().map(|(method, _)| *method).collect::<Vec<_>>().join(", ");
    let refuse = move || {
        let error = WebError::method_not_allowed(&allow);
        async move { Err::<actix_web::HttpResponse, WebError>(error) }
    };
    routes
        .into_iter()
        .fold(web::resource(path.to_owned()), |resource, (_, route)| resource.route(route))
        .default_service(web::route().to(refuse))
}

/// The default service of an app: 404 as a problem.
pub async fn route_not_found(request: HttpRequest) -> Result<actix_web::HttpResponse, WebError> {
    Err(WebError::new(ProblemCode::RouteNotFound, format!("there is nothing at {}", request.path())))
}

/// Query parameters by name. The handler decides about unknown names.
///
/// # Errors
/// 400 when one of `single` is given twice.
pub fn query_pairs(request: &HttpRequest, single: &[&str]) -> Result<BTreeMap<String, String>, WebError> {
    let mut pairs = BTreeMap::new();
    for (name, value) in url::form_urlencoded::parse(request.query_string().as_bytes()) {
        let repeated = pairs.insert(name.clone().into_owned(), value.into_owned()).is_some();
        if repeated && single.contains(&name.as_ref()) {
            let error = assay_contracts::validation::FieldError {
                pointer: name.clone().into_owned(),
                detail: "must be given once".to_owned(),
            };
            let detail = format!("query parameter `{name}` must be given once");
            return Err(Problem::new(ProblemCode::InvalidRequest, detail).with_errors(vec![error]).into());
        }
    }
    Ok(pairs)
}
