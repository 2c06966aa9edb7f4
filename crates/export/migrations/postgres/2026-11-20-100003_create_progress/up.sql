-- How many evaluations of an organization the read model has taken in.
CREATE TABLE progress (
    organization_id uuid   PRIMARY KEY,
    taken_in        bigint NOT NULL
);

-- How many there were when the export was created: its worker waits until the read model has as many. NULL: not known.
ALTER TABLE exports ADD COLUMN awaited_evaluations bigint;
