-- What a translation left out, and what was decided on the way: [{"at": ms, "by": plugin, "text": …, "operator": true}].
alter table {schema}.requests add column dropped text[];
alter table {schema}.requests add column story jsonb;

-- Lists by time, and sums that need not look at the rows themselves.
drop index {schema}.requests_by_account;
drop index {schema}.requests_by_time;
create index requests_by_account on {schema}.requests (account_id, received_at desc, id desc)
  include (model, key_id, operation, status, outcome, first_byte_ms, total_ms);
create index requests_by_time on {schema}.requests (received_at desc, id desc)
  include (model, provider, operation, status, outcome, first_byte_ms, total_ms);
