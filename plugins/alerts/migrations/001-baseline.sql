-- Alerts that run or have ended, reports of processes, messages for sinks, and rules that are not sent for a while.

create table {schema}.alerts (
  id text primary key,
  rule text not null,
  kind text not null,
  title text not null,
  unit text not null,
  subject text not null,
  -- pending: bad, but not for long enough. running: it has begun. ended: it is over.
  phase text not null check (phase in ('pending', 'running', 'ended')),
  -- In the unit; whole billionths of usd and of times.
  value numeric not null,
  threshold numeric not null,
  fields json not null,
  since timestamptz not null,
  began_at timestamptz,
  sent_at timestamptz,
  calm_since timestamptz,
  ended_at timestamptz,
  acknowledged_at timestamptz,
  acknowledged_by text,
  acknowledged_reason text,
  -- Incremented by each change: a change of an older version fails.
  version integer not null default 1,
  check ((phase = 'ended') = (ended_at is not null)),
  check (phase = 'pending' or began_at is not null)
);

create unique index alerts_open on {schema}.alerts (rule, subject) where phase <> 'ended';
create index alerts_begun on {schema}.alerts (began_at desc, id desc) where phase <> 'pending';

-- What a process observes, or events that were reported in it.
create table {schema}.alert_reports (
  kind text not null,
  subject text not null,
  process text not null,
  value numeric not null,
  fields json not null,
  at timestamptz not null,
  primary key (kind, subject, process)
);

create table {schema}.alert_messages (
  alert_id text not null references {schema}.alerts (id) on delete cascade,
  -- Of the alert's version that it reports.
  version integer not null,
  sink text not null,
  message json not null,
  made_at timestamptz not null,
  due_at timestamptz not null,
  attempts integer not null default 0,
  sent_at timestamptz,
  fault text,
  primary key (alert_id, version, sink)
);

create index alert_messages_of_sink on {schema}.alert_messages (sink, made_at desc);
create index alert_messages_due on {schema}.alert_messages (due_at) where sent_at is null;

-- The process that evaluates the rules for a while.
create table {schema}.alert_lease (
  one boolean primary key default true check (one),
  holder text not null,
  held_until timestamptz not null
);

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
