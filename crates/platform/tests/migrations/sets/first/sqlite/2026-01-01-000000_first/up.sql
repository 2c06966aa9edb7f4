CREATE TABLE first (id bigint PRIMARY KEY);
