-- Failed evaluations whose event became a dead letter: a later evaluation replaces them.
ALTER TABLE evaluations ADD COLUMN given_up BOOLEAN NOT NULL DEFAULT FALSE;
