//! One conversation: its transcript, and the verdict beside it.

use actix_web::HttpResponse;
use actix_web::http::StatusCode;
use actix_web::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use actix_web::web::Path;
use askama::Template;
use assay_clients::ClientError;
use assay_contracts::evaluation::{AiInvolvement, Evaluation, TicketEvaluation, UnscoredStatus};
use assay_contracts::evaluations::{Neighbours, TicketTranscript};
use assay_contracts::ids::TicketId;

use super::error::PageError;
use super::filter_form::filter_line;
use super::form::{Faults, query_of};
use super::respond::page;
use super::shell::Shell;
use super::transcript::{Item, Links, MessagePart, Quotes, items, items_of_quotes, message_part};
use super::verdict::{Verdict, verdict};
use super::viewer::{PublicAddress, SessionRequest};
use crate::app::TranscriptLookup;
use crate::domain::{
    ListState, PageTime, Pairs, Run, ai_tool_label, format_count, format_total, language_label, list_address,
    runs, with_query,
};

#[derive(Template)]
#[template(path = "conversation.html")]
struct ConversationPage {
    shell: Shell,
    id: String,
    link: String,
    subject: Vec<Run>,
    external_id: Vec<Run>,
    agents: String,
    time_range: Option<(PageTime, PageTime)>,
    language: String,
    involvement: &'static str,
    items: Vec<Item>,
    quotes: Quotes,
    links: Links,
    is_expired: bool,
    verdict: Option<Verdict>,
    /// Why there is no verdict.
    unscored: Option<String>,
    navigation: Navigation,
}

/// The way to the list, and to the conversations beside this one in its result.
#[derive(Default)]
struct Navigation {
    /// Address of the list.
    list: String,
    /// The query of the list, for the links to messages of the conversation.
    query: Pairs,
    /// The filter in words.
    filter: String,
    previous: Option<String>,
    next: Option<String>,
    /// "3 of 52".
    position: String,
    /// What is wrong with the query.
    faults: Faults,
}

struct FoundConversation {
    transcript: Option<Box<TicketTranscript>>,
    evaluation: Option<TicketEvaluation>,
}

pub(crate) async fn show(request: SessionRequest, id: Path<String>) -> Result<HttpResponse, PageError> {
    let id: TicketId = id.parse().map_err(|_| PageError::NotFound)?;
    // Looked up before the permit is acquired, because it may take long.
    let navigation = find_navigation(&request, id).await;
    let _permit = request.console.transcript_permits.acquire().await;
    let found = find_conversation(&request, id).await?;
    let status = navigation.faults.status();
    let template = view(&request, id, found, navigation);
    page(&request.http, status, &template)
}

/// One message with all of its text, a part of it a page (`part=2`). The other parameters are those of the list.
pub(crate) async fn message(
    request: SessionRequest,
    path: Path<(String, String)>,
) -> Result<HttpResponse, PageError> {
    let (id, number) = path.into_inner();
    let id: TicketId = id.parse().map_err(|_| PageError::NotFound)?;
    let number: usize = number.parse().map_err(|_| PageError::NotFound)?;
    let index = number.checked_sub(1).ok_or(PageError::NotFound)?;
    let (parts, list): (Pairs, Pairs) =
        query_of(&request.http).into_iter().partition(|pair| pair.0 == "part");
    let part: usize = match parts.first() {
        Some((_, part)) => part.parse().map_err(|_| PageError::NotFound)?,
        None => 1,
    };
    let _permit = request.console.transcript_permits.acquire().await;
    let FoundConversation { transcript, evaluation } = find_conversation(&request, id).await?;
    let transcript = transcript.ok_or(PageError::NotFound)?;
    let evaluation = evaluation.as_ref().and_then(evaluation_of);
    let quotes = Quotes::of(&transcript.messages, evaluation);
    let found = message_part(&transcript.messages, evaluation, &quotes, index, part);
    let MessagePart { item, part_count } = found.ok_or(PageError::NotFound)?;
    let links = Links::of_message(id, list);
    let address = |part: usize| links.message(&number, &part, &[]);
    let template = MessagePage {
        shell: Shell::new(&request, "/console/conversations", format!("Message {number}")),
        back: links.in_conversation(number),
        previous: (part > 1).then(|| address(part - 1)),
        next: (part < part_count).then(|| address(part + 1)),
        item,
        quotes,
        part,
        part_count,
        links,
    };
    page(&request.http, StatusCode::OK, &template)
}

#[derive(Template)]
#[template(path = "message.html")]
struct MessagePage {
    shell: Shell,
    /// Address of the message on the page of its conversation.
    back: String,
    item: Item,
    quotes: Quotes,
    links: Links,
    /// Addresses of the parts beside this one.
    previous: Option<String>,
    next: Option<String>,
    /// Number of the part that is shown, from 1.
    part: usize,
    part_count: usize,
}

/// The evaluation as the API gives it.
pub(crate) async fn json(request: SessionRequest, id: Path<String>) -> Result<HttpResponse, PageError> {
    let id: TicketId = id.parse().map_err(|_| PageError::NotFound)?;
    let _permit = request.console.transcript_permits.acquire().await;
    let found = find_conversation(&request, id).await?.evaluation.ok_or(PageError::NotFound)?;
    let text = serde_json::to_string_pretty(&found).map_err(|error| {
        tracing::error!(cause = %error, "evaluation cannot be written");
        PageError::Internal
    })?;
    let mut response = HttpResponse::Ok();
    response.insert_header((CONTENT_TYPE, "application/json")).insert_header((CACHE_CONTROL, "no-store"));
    Ok(response.body(text))
}

/// Transcript and evaluation. The evaluation of a deleted conversation is removed a moment later than the transcript, so the
/// transcript decides whether there is such a conversation.
async fn find_conversation(request: &SessionRequest, id: TicketId) -> Result<FoundConversation, PageError> {
    let services = request.services();
    let (transcript, evaluation) =
        futures_util::future::try_join(services.find_transcript(id), services.find_evaluation(id)).await?;
    let transcript = match transcript {
        TranscriptLookup::Kept(transcript) => Some(transcript),
        TranscriptLookup::Expired => None,
        TranscriptLookup::Unknown => return Err(PageError::NotFound),
    };
    Ok(FoundConversation { transcript, evaluation })
}

/// The navigation in the result of the query. When export, which knows the result, is unavailable, it lacks the neighbours.
async fn find_navigation(request: &SessionRequest, id: TicketId) -> Navigation {
    let services = request.services();
    let pairs = query_of(&request.http);
    let state = match ListState::parse(&pairs) {
        Ok(state) => state,
        // The link to the list keeps the query as it is: the list has the form to correct it.
        Err(errors) => {
            let list = list_address(&pairs);
            return Navigation { list, query: pairs, faults: Faults::new(errors), ..Navigation::default() };
        }
    };
    let mut query = state.filters.to_pairs();
    query.push(("sort", state.sort.to_string()));
    let neighbours = services.find_neighbours(id, &query);
    let filters_by_agent = !state.filters.agent.is_empty();
    let agents = async { if filters_by_agent { services.list_agents().await.ok() } else { None } };
    let (neighbours, agents) = futures_util::future::join(neighbours, agents).await;
    let address =
        |id: TicketId| with_query(&format!("/console/conversations/{id}"), &state.pairs_without_cursor());
    let mut navigation = Navigation {
        list: state.address(),
        query: state.pairs_without_cursor(),
        filter: filter_line(&state, &agents.unwrap_or_default()),
        ..Navigation::default()
    };
    match neighbours {
        Ok(found) => {
            navigation.position = position(&found, !navigation.filter.is_empty());
            navigation.previous = found.previous.map(address);
            navigation.next = found.next.map(address);
        }
        Err(ClientError::ErrorStatus { status: 400, problem: Some(problem), .. }) => {
            navigation.faults = Faults::new(problem.errors);
        }
        Err(error) => tracing::warn!(cause = %error, "neighbours of a conversation are not known"),
    }
    navigation
}

fn position(found: &Neighbours, is_filtered: bool) -> String {
    let total = format_total(&found.total);
    let suffix = if is_filtered { " in this filter" } else { "" };
    match (found.included, found.position) {
        (false, _) if is_filtered => "Not in this filter".to_owned(),
        (false, _) => "Not in the list".to_owned(),
        (true, Some(position)) => format!("{} of {total}{suffix}", format_count(position)),
        (true, None) => format!("One of {total}{suffix}"),
    }
}

fn evaluation_of(evaluation: &TicketEvaluation) -> Option<&Evaluation> {
    match evaluation {
        TicketEvaluation::Done { evaluation, .. } => Some(evaluation),
        TicketEvaluation::Unscored { .. } => None,
    }
}

fn view(
    request: &SessionRequest,
    id: TicketId,
    found: FoundConversation,
    navigation: Navigation,
) -> ConversationPage {
    let transcript = found.transcript.as_deref();
    let done = found.evaluation.as_ref().and_then(evaluation_of);
    let unscored = match &found.evaluation {
        Some(TicketEvaluation::Done { .. }) => None,
        Some(TicketEvaluation::Unscored { status: UnscoredStatus::Failed, error_message, .. }) => {
            let reason = error_message.clone().unwrap_or_default();
            Some(format!("The conversation could not be evaluated. {reason}"))
        }
        _ => Some("The conversation waits for its evaluation; reload the page.".to_owned()),
    };
    let messages = transcript.map(|transcript| transcript.messages.as_slice()).unwrap_or_default();
    let (quotes, items) = match (transcript, done) {
        (None, Some(evaluation)) => {
            let quotes = Quotes::without_transcript(evaluation);
            let items = items_of_quotes(evaluation, &quotes);
            (quotes, items)
        }
        _ => {
            let quotes = Quotes::of(messages, done);
            let items = items(messages, done, &quotes);
            (quotes, items)
        }
    };
    let external_id = transcript
        .map(|transcript| transcript.external_id.as_str())
        .or(done.map(|evaluation| evaluation.external_ticket_id.as_str()))
        .unwrap_or_default();
    let subject =
        transcript.map(|transcript| transcript.subject.trim()).filter(|subject| !subject.is_empty());
    let subject = subject.unwrap_or(if external_id.is_empty() { "Conversation" } else { external_id });
    let section = "/console/conversations";
    ConversationPage {
        link: format!("{}/console/conversations/{id}", PublicAddress::of(&request.http).base_url),
        shell: Shell::new(request, section, title(subject)),
        id: id.to_string(),
        subject: runs(subject),
        external_id: runs(external_id),
        agents: agents(transcript, done),
        time_range: transcript.map(|transcript| {
            (PageTime::long(transcript.started_at), PageTime::end(transcript.started_at, transcript.ended_at))
        }),
        language: done.map(|evaluation| language_label(&evaluation.language)).unwrap_or_default(),
        involvement: done.map(|evaluation| involvement(evaluation.ai_involvement)).unwrap_or_default(),
        items,
        verdict: done.map(|evaluation| verdict(evaluation, &|index| quotes.number_of(index))),
        is_expired: transcript.is_none(),
        links: Links::of_conversation(id, navigation.query.clone()),
        quotes,
        unscored,
        navigation,
    }
}

/// The title of the page: one line without control characters, which could reorder its text.
fn title(subject: &str) -> String {
    let text = runs(subject).into_iter().filter_map(|run| match run {
        Run::Text(text) => Some(text),
        Run::Control { .. } => None,
    });
    text.collect::<String>().split_whitespace().collect::<Vec<_>>().join(" ").chars().take(120).collect()
}

fn agents(transcript: Option<&TicketTranscript>, evaluation: Option<&Evaluation>) -> String {
    let tools = evaluation.iter().flat_map(|evaluation| &evaluation.ai_tools);
    let labels = tools.filter_map(|used| used.ai_tool).map(|tool| ai_tool_label(tool.as_str()));
    let agents = transcript.iter().flat_map(|transcript| &transcript.agents);
    let mut names: Vec<String> = Vec::new();
    for name in labels.chain(agents.map(|agent| agent.name.clone())) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(", ")
}

fn involvement(involvement: AiInvolvement) -> &'static str {
    match involvement {
        AiInvolvement::AiOnly => "AI alone",
        AiInvolvement::AiAssisted => "AI and human",
        AiInvolvement::NoAi => "no AI",
    }
}
