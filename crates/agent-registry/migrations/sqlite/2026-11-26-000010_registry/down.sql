DROP TABLE console_sessions;
DROP TABLE console_links;
DROP TABLE retention;
DROP TABLE agents;
DROP TABLE api_keys;
DROP TABLE organizations;
