-- What operators have noted about models.

create table {schema}.notes (
  model text primary key,
  note text not null,
  created_at timestamptz not null default now()
);
