-- What a project is beside its name. A key stays bound to it by the name, which changes in both tables together.
alter table {schema}.projects add column owner text;
alter table {schema}.projects add column models text[];
alter table {schema}.projects add column archived_at timestamptz;

-- Projects that no call has begun yet.
insert into {schema}.projects (account_id, name)
  select distinct account_id, project from {schema}.keys where project is not null
  on conflict (account_id, name) do nothing;
