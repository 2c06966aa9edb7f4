ALTER TABLE evaluations DROP COLUMN given_up;
