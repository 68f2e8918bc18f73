-- Batches of all accounts, newest first, for operators: any, those in one state, those of one endpoint. A batch changes its
-- state three times, which writes an entry in each of its indexes; what renews its lease writes none.
create index batches_newest on {schema}.batches (created_at, id);
create index batches_by_state on {schema}.batches (coalesce(outcome, state), created_at, id);
create index batches_by_endpoint on {schema}.batches
  (regexp_replace(endpoint, '^(/v1beta/models/)[^/]+:', '\1{model}:'), created_at, id);
