-- Announcements to every process of this gateway; read by id, pruned after an hour.
create table {schema}.changes (
  id bigint generated always as identity primary key,
  topic text not null,
  subject text not null,
  at timestamptz not null default now()
);
create index changes_at on {schema}.changes (at);
