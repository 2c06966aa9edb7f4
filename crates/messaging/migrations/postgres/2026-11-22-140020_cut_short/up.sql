-- How many times the process ended while it was publishing the event on the local bus, that is while a consumer handled it.
ALTER TABLE outbox ADD COLUMN cut_short integer NOT NULL DEFAULT 0;
-- Such events are published alone. Usually empty.
CREATE INDEX outbox_alone ON outbox (next_attempt_at, id) WHERE dead_at IS NULL AND cut_short >= 2;
