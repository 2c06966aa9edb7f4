//! Messages to endpoints: which events an endpoint receives, and their payloads. A payload has the `type`, `timestamp` and
//! `data` of Standard Webhooks; `data` identifies the ticket or export, summarizes the outcome and links to the details.

use assay_contracts::evaluation::{
    AxisBand, ChargeAssessment, ChargeReason, ResolutionStatus, ResolvedBy, Score, ScorerKind,
};
use assay_contracts::export::ExportKind;
use assay_contracts::ids::{EvaluationId, ExportId, OrganizationId, TicketId, WebhookId};
use assay_contracts::notification::{
    EvaluationAnnounced, EvaluationNotificationAudit, EvaluationNotificationOutcome, ExportFinished,
    ExportOutcome,
};
use assay_contracts::time::Timestamp;
use assay_contracts::webhook::WebhookEvent;
use serde::Serialize;

use super::endpoint::Endpoint;

/// An event that endpoints can be notified of.
#[derive(Debug, Clone, PartialEq)]
pub enum Notification {
    Evaluation(EvaluationAnnounced),
    Export(ExportFinished),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub event: WebhookEvent,
    pub ticket_id: Option<TicketId>,
    /// JSON body.
    pub payload: String,
}

impl Notification {
    pub fn organization_id(&self) -> OrganizationId {
        match self {
            Self::Evaluation(announced) => announced.organization_id,
            Self::Export(finished) => finished.organization_id,
        }
    }

    pub fn ticket_id(&self) -> Option<TicketId> {
        match self {
            Self::Evaluation(announced) => Some(announced.ticket_id),
            Self::Export(_) => None,
        }
    }

    /// The messages for an endpoint; none when the endpoint is disabled, not subscribed, or of another organization.
    ///
    /// # Errors
    /// When a payload cannot be serialized, which is a bug.
    pub fn messages_for(&self, endpoint: &Endpoint) -> Result<Vec<Message>, serde_json::Error> {
        if !endpoint.enabled || endpoint.organization_id != self.organization_id() {
            return Ok(Vec::new());
        }
        let events = self.events(endpoint.low_score_below);
        let subscribed = events.into_iter().filter(|event| endpoint.events.contains(event));
        subscribed.map(|event| self.message(event, endpoint.low_score_below)).collect()
    }

    /// The events for an endpoint with this threshold.
    fn events(&self, low_score_below: Score) -> Vec<WebhookEvent> {
        match self {
            Self::Evaluation(EvaluationAnnounced { outcome, .. }) => {
                let Some(audit) = audit_of(outcome) else { return vec![WebhookEvent::EvaluationFailed] };
                let mut events = vec![WebhookEvent::EvaluationCompleted];
                if audit.charge_assessment == ChargeAssessment::Disputed {
                    events.push(WebhookEvent::ResolutionDisputed);
                }
                if matches!(outcome, EvaluationNotificationOutcome::Scored { axis_score, .. } if *axis_score < low_score_below)
                {
                    events.push(WebhookEvent::AxisLowScore);
                }
                events
            }
            Self::Export(ExportFinished { outcome: ExportOutcome::Complete { .. }, .. }) => {
                vec![WebhookEvent::ExportCompleted]
            }
            Self::Export(ExportFinished { outcome: ExportOutcome::Failed { .. }, .. }) => {
                vec![WebhookEvent::ExportFailed]
            }
        }
    }

    fn message(&self, event: WebhookEvent, low_score_below: Score) -> Result<Message, serde_json::Error> {
        let payload = match self {
            Self::Evaluation(announced) => {
                let threshold = (event == WebhookEvent::AxisLowScore).then_some(low_score_below);
                encode(event, announced.evaluated_at, EvaluationData::of(announced, threshold))?
            }
            Self::Export(finished) => encode(event, finished.finished_at, ExportData::of(finished))?,
        };
        Ok(Message { event, ticket_id: self.ticket_id(), payload })
    }
}

/// The message of `webhook.test`.
///
/// # Errors
/// When it cannot be serialized, which is a bug.
pub fn test_message(endpoint_id: WebhookId, now: Timestamp) -> Result<Message, serde_json::Error> {
    let event = WebhookEvent::Test;
    let payload = encode(event, now, TestData { webhook_id: endpoint_id })?;
    Ok(Message { event, ticket_id: None, payload })
}

fn encode(
    event: WebhookEvent,
    timestamp: Timestamp,
    data: impl Serialize,
) -> Result<String, serde_json::Error> {
    serde_json::to_string(&Payload { event, timestamp: timestamp.to_string(), data })
}

fn audit_of(outcome: &EvaluationNotificationOutcome) -> Option<&EvaluationNotificationAudit> {
    match outcome {
        EvaluationNotificationOutcome::Scored { audit, .. }
        | EvaluationNotificationOutcome::NotApplicable { audit } => Some(audit),
        EvaluationNotificationOutcome::Failed { .. } => None,
    }
}

#[derive(Serialize)]
struct Payload<D> {
    #[serde(rename = "type")]
    event: WebhookEvent,
    timestamp: String,
    data: D,
}

#[derive(Serialize)]
struct TestData {
    webhook_id: WebhookId,
}

#[derive(Serialize)]
struct EvaluationData<'a> {
    ticket_id: TicketId,
    external_ticket_id: &'a str,
    source: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    source_account_id: Option<&'a str>,
    evaluation_id: EvaluationId,
    evaluated_at: Timestamp,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    axis: Option<AxisData>,
    #[serde(skip_serializing_if = "Option::is_none")]
    axis_low_score_below: Option<Score>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resolution: Option<ResolutionData>,
    #[serde(skip_serializing_if = "Option::is_none")]
    charge: Option<ChargeData<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scorer: Option<ScorerKind>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_message: Option<&'a str>,
    links: TicketLinks,
}

#[derive(Serialize)]
struct AxisData {
    score: Score,
    band: AxisBand,
}

#[derive(Serialize)]
struct ResolutionData {
    status: ResolutionStatus,
    resolved_by: ResolvedBy,
}

#[derive(Serialize)]
struct ChargeData<'a> {
    assessment: ChargeAssessment,
    reasons: &'a [ChargeReason],
}

#[derive(Serialize)]
struct TicketLinks {
    ticket: String,
    evaluation: String,
}

impl<'a> EvaluationData<'a> {
    fn of(announced: &'a EvaluationAnnounced, axis_low_score_below: Option<Score>) -> Self {
        let (status, axis, error_message) = match &announced.outcome {
            EvaluationNotificationOutcome::Scored { axis_score, axis_band, .. } => {
                ("scored", Some(AxisData { score: *axis_score, band: *axis_band }), None)
            }
            EvaluationNotificationOutcome::NotApplicable { .. } => ("not_applicable", None, None),
            EvaluationNotificationOutcome::Failed { error_message } => {
                ("failed", None, Some(error_message.as_str()))
            }
        };
        let audit = audit_of(&announced.outcome);
        let ticket_id = announced.ticket_id;
        Self {
            ticket_id,
            external_ticket_id: &announced.external_ticket_id,
            source: &announced.source,
            source_account_id: announced.source_account_id.as_deref(),
            evaluation_id: announced.evaluation_id,
            evaluated_at: announced.evaluated_at,
            status,
            axis,
            axis_low_score_below,
            resolution: audit.map(|audit| ResolutionData {
                status: audit.resolution_status,
                resolved_by: audit.resolved_by,
            }),
            charge: audit.map(|audit| ChargeData {
                assessment: audit.charge_assessment,
                reasons: &audit.charge_reasons,
            }),
            scorer: audit.map(|audit| audit.scorer),
            error_message,
            links: TicketLinks {
                ticket: format!("/v1/tickets/{ticket_id}"),
                evaluation: format!("/v1/tickets/{ticket_id}/evaluation"),
            },
        }
    }
}

#[derive(Serialize)]
struct ExportData<'a> {
    export_id: ExportId,
    kind: ExportKind,
    finished_at: Timestamp,
    #[serde(flatten)]
    outcome: &'a ExportOutcome,
    links: ExportLinks,
}

#[derive(Serialize)]
struct ExportLinks {
    export: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    download: Option<String>,
}

impl<'a> ExportData<'a> {
    fn of(finished: &'a ExportFinished) -> Self {
        let export = format!("/v1/evaluations/exports/{}", finished.export_id);
        let is_complete = matches!(finished.outcome, ExportOutcome::Complete { .. });
        let download = is_complete.then(|| format!("{export}/download"));
        Self {
            export_id: finished.export_id,
            kind: finished.kind,
            finished_at: finished.finished_at,
            outcome: &finished.outcome,
            links: ExportLinks { export, download },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use assay_platform::runtime::new_id;
    use serde_json::{Value, json};

    use super::super::secret::SealedSecrets;
    use super::*;

    fn endpoint(organization_id: OrganizationId, events: &[WebhookEvent]) -> Endpoint {
        Endpoint {
            id: new_id(),
            organization_id,
            url: "https://hooks.example.com/".to_owned(),
            description: None,
            events: events.iter().copied().collect::<BTreeSet<_>>(),
            low_score_below: Score::nearest(3.0),
            enabled: true,
            disabled_reason: None,
            secrets: SealedSecrets { current: "sealed".to_owned().into(), previous: None },
            failing_since: None,
            created_at: Timestamp::MIN,
            updated_at: Timestamp::MIN,
        }
    }

    fn evaluated(score: f64, charge: ChargeAssessment) -> EvaluationAnnounced {
        let axis_score = Score::nearest(score);
        let audit = EvaluationNotificationAudit {
            resolution_status: ResolutionStatus::NotResolved,
            resolved_by: ResolvedBy::None,
            charge_assessment: charge,
            charge_reasons: vec![ChargeReason::CustomerRejected],
            scorer: ScorerKind::Builtin,
        };
        EvaluationAnnounced {
            organization_id: new_id(),
            ticket_id: new_id(),
            external_ticket_id: "T-1".to_owned(),
            source: "zendesk".to_owned(),
            source_account_id: None,
            evaluation_id: new_id(),
            evaluated_at: Timestamp::saturating_from_millis(1_763_600_000_000),
            // Not the band of this score: the payload must have the announced band.
            outcome: EvaluationNotificationOutcome::Scored { axis_score, axis_band: AxisBand::Mixed, audit },
        }
    }

    fn events_for(announced: EvaluationAnnounced, wanted: &[WebhookEvent]) -> Vec<WebhookEvent> {
        let endpoint = endpoint(announced.organization_id, wanted);
        let messages = Notification::Evaluation(announced).messages_for(&endpoint).unwrap();
        messages.into_iter().map(|message| message.event).collect()
    }

    #[test]
    fn evaluation_maps_to_up_to_three_events() {
        use WebhookEvent::{AxisLowScore, EvaluationCompleted, EvaluationFailed, ResolutionDisputed};
        let (all, disputed) = (WebhookEvent::SUBSCRIBABLE, ChargeAssessment::Disputed);
        let supported = ChargeAssessment::Supported;
        assert_eq!(
            events_for(evaluated(2.9, disputed), &all),
            [EvaluationCompleted, ResolutionDisputed, AxisLowScore]
        );
        assert_eq!(events_for(evaluated(3.0, supported), &all), [EvaluationCompleted]);
        assert_eq!(events_for(evaluated(1.0, supported), &[AxisLowScore]), [AxisLowScore]);
        assert_eq!(events_for(evaluated(1.0, disputed), &[EvaluationFailed]), []);
        let failed = EvaluationNotificationOutcome::Failed { error_message: "no transcript".to_owned() };
        let failed = EvaluationAnnounced { outcome: failed, ..evaluated(1.0, disputed) };
        assert_eq!(events_for(failed, &all), [EvaluationFailed]);
    }

    #[test]
    fn disabled_and_foreign_endpoints_get_no_messages() {
        let announced = evaluated(1.0, ChargeAssessment::Disputed);
        let mut disabled = endpoint(announced.organization_id, &WebhookEvent::SUBSCRIBABLE);
        disabled.enabled = false;
        let foreign = endpoint(new_id(), &WebhookEvent::SUBSCRIBABLE);
        let notification = Notification::Evaluation(announced);
        assert_eq!(notification.messages_for(&disabled).unwrap(), []);
        assert_eq!(notification.messages_for(&foreign).unwrap(), []);
    }

    #[test]
    fn payload_has_outcome_and_links() {
        let announced = evaluated(2.1, ChargeAssessment::Disputed);
        let endpoint = endpoint(announced.organization_id, &[WebhookEvent::AxisLowScore]);
        let (ticket, evaluation) = (announced.ticket_id, announced.evaluation_id);
        let message = Notification::Evaluation(announced).messages_for(&endpoint).unwrap().remove(0);
        assert_eq!(message.ticket_id, Some(ticket));
        assert_eq!(
            serde_json::from_str::<Value>(&message.payload).unwrap(),
            json!({
                "type": "axis.low_score",
                "timestamp": "2025-11-20T00:53:20.000Z",
                "data": {
                    "ticket_id": ticket, "external_ticket_id": "T-1", "source": "zendesk",
                    "evaluation_id": evaluation, "evaluated_at": 1_763_600_000_000_i64, "status": "scored",
                    "axis": {"score": 2.1, "band": "mixed"}, "axis_low_score_below": 3.0,
                    "resolution": {"status": "not_resolved", "resolved_by": "none"},
                    "charge": {"assessment": "disputed", "reasons": ["CUSTOMER_REJECTED"]},
                    "scorer": "builtin",
                    "links": {
                        "ticket": format!("/v1/tickets/{ticket}"),
                        "evaluation": format!("/v1/tickets/{ticket}/evaluation"),
                    },
                },
            })
        );
    }

    #[test]
    fn export_payload_has_counts_and_links() {
        let outcome = ExportOutcome::Complete {
            rows: 3,
            bytes: 900,
            sha256: "ab".to_owned(),
            missing_evaluations: Some(2),
        };
        let (id, organization_id) = (new_id::<ExportId>(), new_id());
        let kind = ExportKind::Axis;
        let finished_at = Timestamp::saturating_from_millis(17);
        let finished = ExportFinished { organization_id, export_id: id, kind, finished_at, outcome };
        let endpoint = endpoint(organization_id, &WebhookEvent::SUBSCRIBABLE);
        let message = Notification::Export(finished).messages_for(&endpoint).unwrap().remove(0);
        let payload: Value = serde_json::from_str(&message.payload).unwrap();
        assert_eq!((message.event, message.ticket_id), (WebhookEvent::ExportCompleted, None));
        assert_eq!(
            payload["data"],
            json!({
                "export_id": id, "kind": "axis", "finished_at": 17, "status": "complete", "rows": 3, "bytes": 900,
                "sha256": "ab", "missing_evaluations": 2,
                "links": {
                    "export": format!("/v1/evaluations/exports/{id}"),
                    "download": format!("/v1/evaluations/exports/{id}/download"),
                },
            })
        );
    }
}
