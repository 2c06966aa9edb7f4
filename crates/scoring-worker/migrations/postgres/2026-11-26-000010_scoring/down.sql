DROP TABLE progress;
DROP TABLE evaluations;
