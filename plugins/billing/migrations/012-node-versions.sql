-- For those who look at the processes: which version of the gateway each of them runs, and since when.
alter table {schema}.journal_cursor add column version text, add column started_at timestamptz;
