-- Messages as the service compressed them. A row has either these or, from the release before, `messages`; what is packed
-- has a JSON `null` there, which that release takes for a transcript that it cannot read.
ALTER TABLE conversations ADD COLUMN packed BLOB;
