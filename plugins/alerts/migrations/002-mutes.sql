-- Rules that are not sent for a while, and the last test message of each sink.

create table {schema}.alert_mutes (
  rule text primary key,
  until timestamptz not null,
  by text not null,
  reason text not null
);

create table {schema}.alert_tests (
  sink text primary key,
  at timestamptz not null,
  fault text
);
