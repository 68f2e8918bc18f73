-- What its calls are for: `team=search` is on each of them, the value of `env` is said by a request. null: none.
alter table {schema}.keys add column tags text[];
