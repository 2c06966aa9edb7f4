-- Test messages of an endpoint, newest first: their number is bounded.
CREATE INDEX deliveries_tests ON deliveries (endpoint_id, created_at DESC, id DESC) WHERE event = 'webhook.test';
