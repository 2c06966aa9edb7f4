DROP TABLE first;
