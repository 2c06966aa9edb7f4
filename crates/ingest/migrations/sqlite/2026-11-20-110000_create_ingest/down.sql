DROP TABLE participants;
DROP TABLE conversations;
