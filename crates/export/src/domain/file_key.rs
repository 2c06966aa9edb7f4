//! The keys of export files in the object store: one for each attempt at a job.

use assay_contracts::ids::{ExportId, OrganizationId};

/// First segment of all keys.
pub const PREFIX: &str = "exports";

/// The key of the file of one attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileKey {
    pub organization_id: OrganizationId,
    pub export_id: ExportId,
    /// Number of the claim, from 1.
    pub attempt: u32,
}

impl FileKey {
    /// Parses a key; `None` for a file that this service did not write.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split('/');
        let key = match (parts.next(), parts.next(), parts.next(), parts.next(), parts.next()) {
            (Some(PREFIX), Some(organization), Some(export), Some(file), None) => Self {
                organization_id: organization.parse().ok()?,
                export_id: export.parse().ok()?,
                attempt: file.strip_suffix(".csv")?.parse().ok()?,
            },
            _ => return None,
        };
        // Other spellings of the same ids are other files.
        (key.to_string() == text).then_some(key)
    }
}

impl std::fmt::Display for FileKey {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { organization_id, export_id, attempt } = self;
        write!(formatter, "{PREFIX}/{organization_id}/{export_id}/{attempt}.csv")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORGANIZATION: &str = "0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a11";
    const EXPORT: &str = "0199f5a4-3c1e-7c52-9d0a-5b0f6b8f3a15";

    #[test]
    fn key_is_read_as_it_is_written() {
        let text = format!("exports/{ORGANIZATION}/{EXPORT}/12.csv");
        let key = FileKey::parse(&text).unwrap();
        assert_eq!((key.attempt, key.to_string()), (12, text));
    }

    #[test]
    fn foreign_file_is_no_key() {
        let cases = [
            format!("{ORGANIZATION}/{EXPORT}/1.csv"),
            format!("exports/{ORGANIZATION}/{EXPORT}"),
            format!("exports/{ORGANIZATION}/{EXPORT}/1.csv/1.csv"),
            format!("exports/{ORGANIZATION}/{EXPORT}/1.csv.gz"),
            format!("exports/{ORGANIZATION}/{EXPORT}/01.csv"),
            format!("exports/{ORGANIZATION}/{EXPORT}/notes.csv"),
            format!("exports/{}/{EXPORT}/1.csv", ORGANIZATION.to_uppercase()),
            format!("exports/default/{EXPORT}/1.csv"),
        ];
        for case in cases {
            assert_eq!(FileKey::parse(&case), None, "{case}");
        }
    }
}
