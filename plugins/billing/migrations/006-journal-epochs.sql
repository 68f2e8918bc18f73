-- Counts the runs that wrote a journal; the journal's own directory keeps the same count. An older copy of either shows.
alter table {schema}.journal_cursor add column epoch bigint not null default 0;
