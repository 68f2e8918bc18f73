-- The name that the client has chosen for the file; null: none.
alter table {schema}.resumable_uploads add column chosen_name text;
