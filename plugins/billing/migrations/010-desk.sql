-- For those who look at the money of all accounts, by time, and at the few rows that are not of calls.

create index usage_at on {schema}.usage (created_at, request_id);
-- Rows come nearly in the order of their times, so an index of ranges will do: it costs the calls nothing.
create index ledger_at on {schema}.ledger using brin (created_at) with (pages_per_range = 16, autosummarize = on);
create index ledger_entries on {schema}.ledger (seq) where request_id is null;
create index ledger_account_entries on {schema}.ledger (account_id, seq) where request_id is null;
