DROP INDEX deliveries_tests;
