-- SQLite does not compress.
SELECT 1;
