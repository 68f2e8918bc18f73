-- The request that ordered it, and its span as W3C trace context; null: of earlier versions, or not traced.
alter table {schema}.batches add column request_id text, add column trace text;
