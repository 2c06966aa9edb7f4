DROP TABLE expired_tickets;
DROP INDEX conversations_age;
DROP TABLE used_identities;
DROP TABLE deletions;
