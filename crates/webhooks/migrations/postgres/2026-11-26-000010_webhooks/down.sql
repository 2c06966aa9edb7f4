DROP TABLE attempts, deliveries, endpoints, retractions;
