-- Periods that an organization does not share with the rest of the installation, in days; 0: for ever, NULL: as the
-- installation has it.
CREATE TABLE retention (
    organization_id  uuid PRIMARY KEY REFERENCES organizations (id),
    transcripts_days integer CHECK (transcripts_days BETWEEN 0 AND 36500),
    evaluations_days integer CHECK (evaluations_days BETWEEN 0 AND 36500),
    files_days       integer CHECK (files_days BETWEEN 0 AND 36500)
);
