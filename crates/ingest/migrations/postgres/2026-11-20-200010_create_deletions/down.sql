DROP INDEX conversations_age;
DROP TABLE deletions;
