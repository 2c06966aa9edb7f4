-- The parked events would be lost: it fails until there are none (gauge assay_parked_events).
DO $$
BEGIN
    IF EXISTS (SELECT 1 FROM parked) THEN
        RAISE EXCEPTION 'events are parked: let this release handle them first';
    END IF;
END
$$;
DROP TABLE parked;
