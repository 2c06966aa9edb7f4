-- Fails at its end, when all else is done.
CREATE TABLE second (id bigint PRIMARY KEY);
ALTER TABLE first ADD COLUMN second bigint;
ALTER TABLE first ADD COLUMN second bigint;
