-- Batches of requests that clients order, and their lines. Times are the database's.

create table {schema}.batches (
  id text primary key,
  account_id text not null,
  -- Its key and its address are checked again for each line.
  key_id text not null,
  remote_address text not null,
  dialect text not null check (dialect in ('chat', 'messages')),
  -- The address that each line calls, and headers that it carries.
  endpoint text not null,
  headers json not null,
  input_file text not null,
  metadata json,
  -- validating: lines are read. running: lines are made. finishing: files are written. ended: nothing follows.
  state text not null check (state in ('validating', 'running', 'finishing', 'ended')),
  outcome text check (outcome in ('completed', 'failed', 'cancelled', 'expired')),
  -- Of one that failed: what is wrong with its input.
  errors json,
  total integer not null default 0,
  -- Of one that has ended; before, lines are counted.
  counts json,
  output_file text,
  error_file text,
  output_lifetime_ms bigint,
  created_at timestamptz not null default now(),
  started_at timestamptz,
  finishing_at timestamptz,
  ended_at timestamptz,
  cancel_at timestamptz,
  expires_at timestamptz not null,
  due_at timestamptz default now(),
  lease text,
  lease_until timestamptz,
  check ((state = 'ended') = (outcome is not null))
);

create index batches_due on {schema}.batches (due_at) where state <> 'ended';
create index batches_of_account on {schema}.batches (account_id, created_at, id);

create table {schema}.batch_lines (
  batch_id text not null references {schema}.batches on delete cascade,
  number integer not null,
  custom_id text not null,
  -- Where it stands in the input.
  first_byte bigint not null,
  bytes integer not null,
  -- waiting: it may be sent. running: it may have been sent. done: its answer is known.
  state text not null default 'waiting' check (state in ('waiting', 'running', 'done')),
  due_at timestamptz not null default now(),
  -- The worker that has sent it, and when it was sent first.
  lease text,
  sent_at timestamptz,
  result text check (result in ('succeeded', 'errored', 'cancelled', 'expired')),
  status integer,
  request_id text,
  -- The answer's body.
  answer text,
  primary key (batch_id, number),
  check ((state = 'done') = (result is not null))
);

create index batch_lines_open on {schema}.batch_lines (batch_id, due_at) where state <> 'done';
