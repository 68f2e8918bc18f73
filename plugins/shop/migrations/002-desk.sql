-- For lists of all codes, newest first.
create index codes_at on {schema}.codes (created_at, id);
