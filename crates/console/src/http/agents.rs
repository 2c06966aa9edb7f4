//! The page of AI agents.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use askama::Template;
use assay_clients::ClientError;
use assay_contracts::agent::{AgentType, NewAgent};

use super::error::PageError;
use super::form::{Faults, Fields, query_of};
use super::kept_form::kept_fields;
use super::long_list::{MAX_ROWS, Pager, read_id, take_page};
use super::respond::{page, redirect};
use super::session_form::CheckedForm;
use super::shell::Shell;
use super::viewer::SessionRequest;
use crate::domain::{PageTime, Pairs, format_count, with_query};

#[derive(Template)]
#[template(path = "agents.html")]
struct AgentsPage {
    shell: Shell,
    agents: Vec<Row>,
    total: String,
    pages: Pager,
    is_registered: bool,
    /// What is wrong with the query.
    query_faults: Faults,
    typed: Fields,
    faults: Faults,
}

struct Row {
    id: String,
    external_id: String,
    name: String,
    created: PageTime,
}

pub(crate) async fn list(request: SessionRequest) -> Result<HttpResponse, PageError> {
    show(&request, kept_fields(&request.http).unwrap_or_default(), Faults::default()).await
}

pub(crate) async fn create(CheckedForm { request, fields }: CheckedForm) -> Result<HttpResponse, PageError> {
    let typed = |name: &str| fields.get(name).trim().to_owned();
    let new =
        NewAgent { external_id: typed("external_id"), name: typed("name"), agent_type: AgentType::Custom };
    match request.services().create_agent(&new).await {
        Ok(_) => Ok(redirect("/console/agents?done=registered")),
        // 409: another agent has the external id.
        Err(ClientError::ErrorStatus { status: 400 | 409, problem: Some(problem), .. }) => {
            let faults = Faults::of_problem(*problem, "external_id");
            show(&request, fields, faults).await
        }
        Err(error) => Err(error.into()),
    }
}

/// The address of the page after an agent.
fn address_after(id: Option<String>) -> String {
    let before: Pairs = id.map(|id| ("before".to_owned(), id)).into_iter().collect();
    with_query("/console/agents", &before)
}

/// The page, with what was typed into its form and what is wrong with that.
async fn show(request: &SessionRequest, typed: Fields, faults: Faults) -> Result<HttpResponse, PageError> {
    let query = query_of(&request.http);
    let mut query_faults = Faults::of_parameters(&query, &["before", "done"]);
    let before = read_id(&query, "before", &mut query_faults);
    let found = request.services().list_agents_before(before).await?;
    let listed = u64::try_from(found.agents.len()).unwrap_or_default();
    let (agents, last) = take_page(found.agents, MAX_ROWS, |agent| agent.id);
    let agents = agents.into_iter().map(|agent| Row {
        id: agent.id.to_string(),
        external_id: agent.external_id,
        name: agent.name,
        created: PageTime::long(agent.created_at),
    });
    let template = AgentsPage {
        agents: agents.collect(),
        total: format_count(found.total.unwrap_or(listed)),
        pages: Pager::new(before, last, address_after),
        shell: Shell::new(request, "/console/agents", "Agents"),
        is_registered: query.iter().any(|(name, value)| name == "done" && value == "registered"),
        query_faults,
        typed,
        faults,
    };
    let has_faults = !(template.faults.is_empty() && template.query_faults.is_empty());
    let status = if has_faults { StatusCode::BAD_REQUEST } else { StatusCode::OK };
    page(&request.http, status, &template)
}
