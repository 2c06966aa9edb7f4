DROP TABLE expired_tickets;
DROP TABLE deletions;
DROP TABLE participants;
DROP TABLE conversations;
DROP TABLE identities;
