-- A deleted ticket keeps its row, so that an evaluation that comes late finds its place taken: without lines, without an
-- organization (all zeros) and with the latest moment there is, so that it is in no file and no evaluation is newer, also
-- for whoever does not know this column.
ALTER TABLE evaluation_rows ADD COLUMN deleted_at bigint;
CREATE INDEX evaluation_rows_deleted ON evaluation_rows (deleted_at) WHERE deleted_at IS NOT NULL;

-- What an organization no longer keeps: its oldest evaluations. Their age is in the ids of their tickets.
CREATE INDEX evaluation_rows_age ON evaluation_rows (organization_id, ticket_id);

-- The files that an organization's period is about.
CREATE INDEX exports_kept ON exports (organization_id) WHERE status = 'complete' AND file_removed_at IS NULL;
