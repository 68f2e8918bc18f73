-- Files that clients upload, or that batches make for them, have a name and a purpose; those of tasks have neither.

alter table {schema}.files add column name text, add column purpose text;

create index files_uploaded on {schema}.files (account_id, created_at, id) where purpose is not null and state = 'kept';
