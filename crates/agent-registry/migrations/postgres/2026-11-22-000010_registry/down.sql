DROP TABLE retention;
DROP TABLE agents;
DROP TABLE api_keys;
DROP TABLE organizations;
