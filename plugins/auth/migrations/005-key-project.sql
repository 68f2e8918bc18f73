-- A project is the keys that have its name here, to sum up what they spend.
alter table {schema}.keys add column project text;
create index keys_of_projects on {schema}.keys (account_id) where project is not null;
