-- Projects are objects of an account: calls keep their ids. A key names its project, which begins with the first call of such a key.
create table {schema}.projects (
  id uuid primary key default gen_random_uuid(),
  account_id uuid not null references {schema}.accounts (id),
  name text not null,
  created_at timestamptz not null default now(),
  unique (account_id, name)
);

-- The person that the key was made by; null: it is a service's.
alter table {schema}.keys add column person text;
