-- Calls that billing has are rows of `calls`. Ids are in the order of arrival, so the primary key serves ranges of time.
drop index {schema}.requests_by_account;
drop index {schema}.requests_by_time;
create index requests_by_account on {schema}.requests (account_id, id);
