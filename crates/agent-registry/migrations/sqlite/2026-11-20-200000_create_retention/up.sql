-- Periods that an organization does not share with the rest of the installation, in days; 0: for ever, NULL: as the
-- installation has it.
CREATE TABLE retention (
    organization_id  TEXT    NOT NULL PRIMARY KEY REFERENCES organizations (id),
    transcripts_days INTEGER CHECK (transcripts_days BETWEEN 0 AND 36500),
    evaluations_days INTEGER CHECK (evaluations_days BETWEEN 0 AND 36500),
    files_days       INTEGER CHECK (files_days BETWEEN 0 AND 36500)
) WITHOUT ROWID;
