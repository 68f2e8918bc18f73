-- The name that a client has chosen, of one file of the account at a time.
alter table {schema}.files add column chosen_name text;
create unique index files_chosen on {schema}.files (account_id, chosen_name) where chosen_name is not null and state <> 'gone';
