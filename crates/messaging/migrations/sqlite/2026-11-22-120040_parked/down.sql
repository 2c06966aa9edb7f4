-- The parked events would be lost: it fails until there are none (gauge assay_parked_events).
CREATE TABLE parked_before_revert (events INTEGER CONSTRAINT events_are_parked CHECK (events = 0));
INSERT INTO parked_before_revert SELECT count(*) FROM parked;
DROP TABLE parked_before_revert;
DROP TABLE parked;
