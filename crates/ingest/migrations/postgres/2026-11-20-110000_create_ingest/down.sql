DROP TABLE participants;
DROP TABLE conversations;
DROP TABLE identities;
