ALTER TABLE exports DROP COLUMN awaited_evaluations;
DROP TABLE progress;
