-- What a key may do beyond its models: where it may be used from, how often, and what it may spend.
alter table {schema}.keys add column addresses text[];
-- {"rpm": 60, "rpd": …, "tpm": …, "concurrency": …}, beside the plan's.
alter table {schema}.keys add column limits jsonb;
-- nano-USD in each calendar period (UTC): day, week, month, ever. Both or neither.
alter table {schema}.keys add column cap_amount bigint;
alter table {schema}.keys add column cap_every text;

-- Lists of keys, newest first.
create index keys_by_time on {schema}.keys (created_at desc, id desc);
