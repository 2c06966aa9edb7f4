//! The exported files: RFC 4180, two kinds, fixed columns that are only ever appended.
//!
//! A line is rendered once, when its evaluation arrives, and stored with its column version. An export only copies lines;
//! lines of an older version are padded with empty cells.

mod audit;
mod axis;
mod columns;
mod event_fields;
mod line;

use assay_contracts::event::ConversationEvaluated;
use assay_contracts::export::ExportKind;

use self::columns::Column;
pub use self::event_fields::EventFields;
use self::line::Line;

/// Line terminator (RFC 4180, section 2, rule 1).
pub const LINE_END: &str = "\r\n";

/// Version of the columns that [`render_both`] writes. To add columns: append them, append the new total to
/// the histories below, and raise this by one.
pub const COLUMNS_VERSION: i16 = 1;

/// How many columns each version had; version 1 first.
const AXIS_HISTORY: [usize; COLUMNS_VERSION as usize] = [43];
const AUDIT_HISTORY: [usize; COLUMNS_VERSION as usize] = [43];

/// A column version that this release does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("columns of version {0} are unknown to this release, which knows versions 1 to {COLUMNS_VERSION}")]
pub struct UnknownColumns(pub i16);

/// The column names, in order.
pub fn column_names(kind: ExportKind) -> impl Iterator<Item = &'static str> {
    columns(kind).map(|column| column.name)
}

/// The header line with its terminator. Column names need no quotes: they have letters, digits and underscores only.
pub fn header(kind: ExportKind) -> String {
    let names: Vec<&str> = column_names(kind).collect();
    names.join(",") + LINE_END
}

/// The line of an evaluation, without its terminator.
pub fn render(kind: ExportKind, event: &ConversationEvaluated) -> String {
    let [axis, audit] = render_both(event);
    match kind {
        ExportKind::Axis => axis,
        ExportKind::ResolutionAudit => audit,
    }
}

/// The lines of an evaluation in both kinds of file, `axis` and `resolution_audit`, without terminators. The
/// common leading columns are rendered once.
pub fn render_both(event: &ConversationEvaluated) -> [String; 2] {
    let fields = EventFields::of(event);
    let append = |mut line: Line, parts: &[&[Column]]| {
        parts.iter().copied().flatten().for_each(|column| column.write(&fields, &mut line));
        line
    };
    let common = append(Line::with_capacity(LINE_CAPACITY), &[&columns::TICKET[..]]);
    [&axis::AXIS, &audit::AUDIT].map(|specific| append(common.clone(), specific).finish())
}

/// Initial capacity; most lines are shorter.
const LINE_CAPACITY: usize = 960;

/// The end of a line with columns of `version`: empty cells for missing columns, and the terminator.
///
/// # Errors
/// When `version` is newer than this release.
pub fn padding_and_line_end(kind: ExportKind, version: i16) -> Result<String, UnknownColumns> {
    let history: &[usize] = match kind {
        ExportKind::Axis => &AXIS_HISTORY,
        ExportKind::ResolutionAudit => &AUDIT_HISTORY,
    };
    let missing = missing_cells(history, columns(kind).count(), version)?;
    Ok(",".repeat(missing) + LINE_END)
}

/// Number of columns that a line of `version` lacks.
fn missing_cells(history: &[usize], columns: usize, version: i16) -> Result<usize, UnknownColumns> {
    let index = usize::try_from(version).ok().and_then(|version| version.checked_sub(1));
    let had = index.and_then(|index| history.get(index)).ok_or(UnknownColumns(version))?;
    Ok(columns.saturating_sub(*had))
}

fn columns(kind: ExportKind) -> impl Iterator<Item = &'static Column> {
    let specific = match kind {
        ExportKind::Axis => &axis::AXIS,
        ExportKind::ResolutionAudit => &audit::AUDIT,
    };
    columns::TICKET.iter().chain(specific.iter().copied().flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As documented.
    const AXIS_HEADER: &str = "ticket_id,external_ticket_id,source,source_account_id,subject,\
        conversation_started_at,conversation_ended_at,imported_at,evaluated_at,evaluation_status,ai_involvement,\
        ai_tools,agent_ids,agent_names,axis_score,axis_band,axis_excluding_handoff,resolution_accuracy,\
        resolution_accuracy_reason,interaction_effort,interaction_effort_reason,handoff_smoothness,\
        handoff_smoothness_reason,handoff_state,confidence,customer_messages,ai_messages,human_messages,\
        internal_comments,system_events,customer_sentiment_start,customer_sentiment_end,\
        repeated_information_count,duration_seconds,first_response_seconds,language,flags,evidence_message_ids,\
        scorer,scorer_version,evaluation_id,transcript_sha256,schema_version\r\n";
    const AUDIT_HEADER: &str = "ticket_id,external_ticket_id,source,source_account_id,subject,\
        conversation_started_at,conversation_ended_at,imported_at,evaluated_at,evaluation_status,ai_involvement,\
        ai_tools,agent_ids,agent_names,resolution_status,resolved_by,resolution_basis,resolution_confidence,\
        resolution_reason,charge_assessment,charge_reasons,handoff_state,handoff_at,first_human_reply_at,\
        customer_requested_human,customer_confirmed,customer_replied_after_last_ai,customer_messages,ai_messages,\
        human_messages,internal_comments,system_events,last_ai_message_at,last_customer_message_at,\
        observed_silence_hours,axis_score,evidence_message_ids,evidence_quote,scorer,scorer_version,evaluation_id,\
        transcript_sha256,schema_version\r\n";

    #[test]
    fn header_has_the_documented_columns_in_order() {
        assert_eq!(header(ExportKind::Axis), AXIS_HEADER);
        assert_eq!(header(ExportKind::ResolutionAudit), AUDIT_HEADER);
    }

    #[test]
    fn column_history_ends_with_the_current_columns() {
        for (kind, history) in
            [(ExportKind::Axis, AXIS_HISTORY), (ExportKind::ResolutionAudit, AUDIT_HISTORY)]
        {
            assert_eq!(history.last(), Some(&columns(kind).count()), "{kind:?}");
            assert!(history.is_sorted(), "columns are only ever appended");
        }
    }

    #[test]
    fn line_of_an_older_version_lacks_appended_columns() {
        let missing = |version| missing_cells(&[3, 5, 6], 6, version);
        assert_eq!([missing(1), missing(2), missing(3)], [Ok(3), Ok(1), Ok(0)]);
        assert_eq!(missing(4), Err(UnknownColumns(4)));
    }

    #[test]
    fn line_of_a_newer_version_is_refused() {
        assert_eq!(padding_and_line_end(ExportKind::Axis, COLUMNS_VERSION).as_deref(), Ok("\r\n"));
        for version in [-1, 0, COLUMNS_VERSION + 1] {
            assert_eq!(padding_and_line_end(ExportKind::Axis, version), Err(UnknownColumns(version)));
        }
    }
}
