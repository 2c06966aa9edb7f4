-- Messages as the service compressed them. A row has either these or, from the release before, `messages`; what is packed
-- has a JSON `null` there, which that release takes for a transcript that it cannot read.
ALTER TABLE conversations ADD COLUMN packed bytea;
-- It would only be looked through in vain for something more to compress.
ALTER TABLE conversations ALTER COLUMN packed SET STORAGE EXTERNAL;
