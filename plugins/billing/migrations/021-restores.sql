-- Names this database for good: a copy of it has the same name, another one has another. The first start that serves gives it.
create table {schema}.identity (
  one boolean primary key default true check (one),
  id uuid not null
);

-- A process found that this database had acknowledged more than it has: it was put back to an earlier time. Until an operator
-- accepts that, no money comes in.
create table {schema}.restores (
  id bigint generated always as identity primary key,
  -- The process, by the name of its journal.
  journal text not null,
  found_at timestamptz not null default now(),
  -- What happened from here on, to `until`, may be missing.
  since timestamptz not null,
  until timestamptz not null,
  -- Ended calls that came back from the journal.
  calls bigint not null,
  -- Movements of money that the process remembers and this database lacks.
  lost json not null,
  accepted_at timestamptz
);
create unique index restores_waiting on {schema}.restores (journal) where accepted_at is null;
