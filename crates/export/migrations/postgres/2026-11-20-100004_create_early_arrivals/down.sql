DROP TABLE early_arrivals;
