DROP TABLE early_arrivals;
DROP TABLE progress;
DROP TABLE evaluation_rows;
DROP TABLE exports;
