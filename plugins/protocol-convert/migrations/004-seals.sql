-- The secret that seals are made with where none is configured, and marks of those that were used.
create table {schema}.seal_settings (
  name text primary key,
  value text not null
);
