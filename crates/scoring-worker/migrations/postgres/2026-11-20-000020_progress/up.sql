-- How many evaluations of an organization were ever recorded. An export waits until the read model has as many.
CREATE TABLE progress (
    organization_id uuid PRIMARY KEY,
    evaluated bigint NOT NULL
);
