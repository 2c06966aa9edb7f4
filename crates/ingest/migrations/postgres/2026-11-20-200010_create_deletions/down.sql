DROP TABLE expired_tickets;
DROP INDEX conversations_age;
DROP TABLE deletions;
