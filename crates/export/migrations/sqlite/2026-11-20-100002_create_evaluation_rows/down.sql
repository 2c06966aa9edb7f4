DROP TABLE evaluation_rows;
