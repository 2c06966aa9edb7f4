//! The page of AI agents.

use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;

use super::Console;
use super::error::PageError;
use super::form::Faults;
use super::long_list::{first_page, read_before};
use super::respond::page;
use super::shell::Shell;
use super::viewer::Viewer;
use crate::app::list_agents_before;
use crate::domain::{PageTime, format_count};

#[derive(Template)]
#[template(path = "agents.html")]
struct AgentsPage {
    shell: Shell,
    agents: Vec<Row>,
    /// Number of all agents.
    total: String,
    is_first_page: bool,
    /// The last agent of the page, if there are older ones.
    next: Option<String>,
    faults: Faults,
}

struct Row {
    id: String,
    external_id: String,
    name: String,
    created: PageTime,
}

pub(crate) async fn list(request: HttpRequest, console: Data<Console>) -> Result<HttpResponse, PageError> {
    let viewer = Viewer::of(&request, &console).await?;
    let (before, faults) = read_before(&request, &[]);
    let found = list_agents_before(&console.services, &viewer.claims, before).await?;
    let listed = u64::try_from(found.agents.len()).unwrap_or_default();
    let (agents, next) = first_page(found.agents, |agent| agent.id);
    let agents = agents.into_iter().map(|agent| Row {
        id: agent.id.to_string(),
        external_id: agent.external_id,
        name: agent.name,
        created: PageTime::long(agent.created_at),
    });
    let template = AgentsPage {
        agents: agents.collect(),
        total: format_count(found.total.unwrap_or(listed)),
        is_first_page: before.is_none(),
        next: next.map(|id| id.to_string()),
        shell: Shell::new(&request, &console, &viewer, "/console/agents", "Agents"),
        faults,
    };
    page(&request, template.faults.status(), &template)
}
