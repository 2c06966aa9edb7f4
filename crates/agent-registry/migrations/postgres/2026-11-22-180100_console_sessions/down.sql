DROP TABLE console_sessions;
DROP TABLE console_links;
