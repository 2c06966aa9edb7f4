DROP TABLE parked;
DROP TABLE inbox;
DROP TABLE outbox;
