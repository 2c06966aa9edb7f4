DROP TABLE exports;
DROP FUNCTION refuse_export_step();
