-- `none`: nothing of the account's calls is kept; null: what the settings say. An earlier version that serves beside this one does not know it.
alter table {schema}.accounts add column retention text check (retention = 'none');
