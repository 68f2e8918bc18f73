-- What a key has spent since some moment, and what is set aside for its orders: read once for each key with a spend cap.
create index usage_key on {schema}.usage (key_id, created_at) include (cost);
create index deposits_key on {schema}.deposits ((terms->>'key'));
