-- Transcripts that are packed are lost: the database cannot unpack them.
ALTER TABLE conversations DROP COLUMN packed;
