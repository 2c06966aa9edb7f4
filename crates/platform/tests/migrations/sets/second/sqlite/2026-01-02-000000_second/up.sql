CREATE TABLE second (id bigint PRIMARY KEY);
ALTER TABLE first ADD COLUMN second bigint;
