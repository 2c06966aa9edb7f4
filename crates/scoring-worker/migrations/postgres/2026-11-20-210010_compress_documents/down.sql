DO $$
DECLARE
    part regclass;
BEGIN
    FOR part IN SELECT relid FROM pg_partition_tree('evaluations') LOOP
        EXECUTE format('ALTER TABLE %s ALTER COLUMN document SET COMPRESSION default', part);
    END LOOP;
END $$;
