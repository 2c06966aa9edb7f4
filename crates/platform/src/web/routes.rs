//! Routing helpers whose errors are problem objects: 405, 404 and invalid queries.

use std::collections::BTreeMap;
use std::convert::Infallible;

use actix_web::body::{BodySize, BodyStream, BoxBody, MessageBody, SizedStream};
use actix_web::dev::{ServiceFactory, ServiceRequest, ServiceResponse};
use actix_web::http::Method;
use actix_web::http::header::ALLOW;
use actix_web::middleware::{Next, from_fn};
use actix_web::web::Bytes;
use actix_web::{Error, HttpRequest, Resource, Route, web};
use assay_contracts::problem::{Problem, ProblemCode};
use assay_contracts::validation::FieldError;

use super::error::WebError;
use super::pagination::invalid_parameter;

/// A resource with its routes. HEAD is answered like GET, without the content; any other method gets 405 with `Allow`.
pub fn resource(
    path: &str,
    routes: Vec<(&'static str, Route)>,
) -> Resource<
    impl ServiceFactory<
        ServiceRequest,
        Config = (),
        Response = ServiceResponse<BoxBody>,
        Error = Error,
        InitError = (),
    > + use<>,
> {
    let mut methods: Vec<&str> = routes.iter().map(|(method, _)| *method).collect();
    let get_without_head =
        methods.iter().position(|method| *method == "GET").filter(|_| !methods.contains(&"HEAD"));
    let has_get_without_head = get_without_head.is_some();
    if let Some(get) = get_without_head {
        methods.insert(get + 1, "HEAD");
    }
    let allow = methods.join(", ");
    let refuse = move || {
        let error = WebError::new(ProblemCode::MethodNotAllowed, format!("allowed here: {allow}"))
            .with_header(ALLOW, &allow);
        async move { Err::<actix_web::HttpResponse, WebError>(error) }
    };
    routes
        .into_iter()
        .fold(web::resource(path.to_owned()), |resource, (_, route)| resource.route(route))
        .default_service(web::route().to(refuse))
        .wrap(from_fn(move |request, next| answer_head_like_get(has_get_without_head, request, next)))
}

/// Answers HEAD with the head of the response to GET (RFC 9110, section 9.3.2), unless the resource has a route for it.
async fn answer_head_like_get(
    has_get_without_head: bool,
    mut request: ServiceRequest,
    next: Next<impl MessageBody + 'static>,
) -> Result<ServiceResponse<BoxBody>, Error> {
    if !has_get_without_head || request.method() != Method::HEAD {
        return next.call(request).await.map(ServiceResponse::map_into_boxed_body);
    }
    request.head_mut().method = Method::GET;
    Ok(next.call(request).await?.map_body(|_, body| without_content(body.size())))
}

/// A body that declares a size and has no content, for a response to HEAD.
pub fn without_content(size: BodySize) -> BoxBody {
    let nothing = futures_util::stream::empty::<Result<Bytes, Infallible>>();
    match size {
        BodySize::None => BoxBody::new(actix_web::body::None::new()),
        BodySize::Sized(length) => BoxBody::new(SizedStream::new(length, nothing)),
        BodySize::Stream => BoxBody::new(BodyStream::new(nothing)),
    }
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
        let is_repeated = pairs.insert(name.clone().into_owned(), value.into_owned()).is_some();
        if is_repeated && single.contains(&name.as_ref()) {
            return Err(invalid_parameter(&name, "must be given once"));
        }
    }
    Ok(pairs)
}

/// The decoded pairs of a query, repeated names included.
pub fn all_query_pairs(request: &HttpRequest) -> impl Iterator<Item = (String, String)> + '_ {
    url::form_urlencoded::parse(request.query_string().as_bytes()).into_owned()
}

/// 400 with every fault of a query.
pub fn invalid_query(errors: Vec<FieldError>) -> WebError {
    let names: Vec<&str> = errors.iter().map(|error| error.pointer.as_str()).collect();
    let detail = format!("query parameters with faults: {}", names.join(", "));
    Problem::new(ProblemCode::InvalidRequest, detail).with_errors(errors).into()
}
