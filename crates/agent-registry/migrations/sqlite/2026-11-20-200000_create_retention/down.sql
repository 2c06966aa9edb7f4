DROP TABLE retention;
