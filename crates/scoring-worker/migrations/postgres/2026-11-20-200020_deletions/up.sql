-- A deleted ticket keeps its row, so that an evaluation that comes late finds its place taken: status 'failed', no
-- document, no message, and no organization (all zeros), so that it is nobody's for whoever does not know this column.
ALTER TABLE evaluations ADD COLUMN deleted_at bigint;
CREATE INDEX evaluations_deleted ON evaluations (deleted_at) WHERE deleted_at IS NOT NULL;

-- What an organization no longer keeps: its oldest evaluations. Their age is in the ids of their tickets.
CREATE INDEX evaluations_age ON evaluations (organization_id, ticket_id);
