-- The span of the request that ordered it, as W3C trace context; null: it was not traced.
alter table {schema}.tasks add column trace text;
