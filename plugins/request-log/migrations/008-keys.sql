-- Pages ask for the groups of listed keys too, as they ask for those of accounts.
create index request_sums_groups_key on {schema}.request_sums_groups (key_id);
