-- Pages ask for the groups of listed keys too, as they ask for those of accounts.
create index request_sums_groups_key on {schema}.request_sums_groups (key_id);
-- This index is read as a whole each time; with ranges four times as long it is a quarter, and a quarter of an hour has several ranges.
alter index {schema}.request_sums_fine set (pages_per_range = 32);
reindex index {schema}.request_sums_fine;
