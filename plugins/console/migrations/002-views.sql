-- Filters of pages that people have saved under a name: they are a person's own, at most 50 of each.

create table {schema}.console_views (
  person_id text not null references {schema}.console_people (id) on delete cascade,
  -- The page's path below /console.
  page text not null,
  name text not null,
  -- The page's address behind the question mark.
  query text not null,
  saved_at timestamptz not null,
  primary key (person_id, page, name)
);
