//! The page of AI agents.

use actix_web::http::StatusCode;
use actix_web::web::Data;
use actix_web::{HttpRequest, HttpResponse};
use askama::Template;

use super::Console;
use super::error::PageError;
use super::respond::page;
use super::shell::Shell;
use super::viewer::Viewer;
use crate::app::list_agents;
use crate::domain::PageTime;

#[derive(Template)]
#[template(path = "agents.html")]
struct AgentsPage {
    shell: Shell,
    agents: Vec<Row>,
}

struct Row {
    id: String,
    external_id: String,
    name: String,
    created: PageTime,
}

pub(crate) async fn list(request: HttpRequest, console: Data<Console>) -> Result<HttpResponse, PageError> {
    let viewer = Viewer::of(&request, &console).await?;
    let agents = list_agents(&console.services, &viewer.claims).await?.into_iter().map(|agent| Row {
        id: agent.id.to_string(),
        external_id: agent.external_id,
        name: agent.name,
        created: PageTime::long(agent.created_at),
    });
    let template = AgentsPage {
        agents: agents.collect(),
        shell: Shell::new(&request, &console, &viewer, "/console/agents", "Agents"),
    };
    page(&request, StatusCode::OK, &template)
}
