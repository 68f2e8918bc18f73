-- Images and videos that are made for clients later. A task is its own job: whoever takes its lease does its next step.

create table {schema}.tasks (
  id text not null,
  -- Of the exchange that ordered it; its hold, attempts and charge go by this id.
  request_id uuid not null,
  account_id text not null,
  key_id text not null,
  kind text not null check (kind in ('image', 'video')),
  model text not null,
  state text not null check (state in
    ('queued', 'creating', 'reconciling', 'running', 'copying', 'completed', 'failed', 'cancelled')),
  progress smallint not null default 0,
  -- The order without what the client shows the model, which is forgotten in the end.
  order_head json not null,
  order_refs json,
  callback_url text,
  -- Every departure to a vendor; the last one is the one that counts. `departure` is its number.
  attempts json not null default '[]',
  departure smallint not null default 0,
  vendor_id text,
  -- What the vendor says that it made: what is charged, and where its files lie until they are copied.
  made json,
  vendor_files json,
  results json not null default '[]',
  error json,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  completed_at timestamptz,
  deadline_at timestamptz not null,
  -- The queue: when there is something to do, who does it, and for how long that is believed.
  due_at timestamptz,
  lease text,
  lease_until timestamptz,
  tries integer not null default 0,
  -- The span of the request that ordered it, as W3C trace context; null: it was not traced.
  trace text,
  -- Workers have the id alone.
  primary key (id, account_id),
  unique (account_id, request_id),
  -- What is final has nothing to do.
  check ((due_at is null) = (state in ('completed', 'failed', 'cancelled')))
);
create index tasks_due on {schema}.tasks (due_at) where due_at is not null;
create index tasks_account on {schema}.tasks (account_id, created_at desc, id desc);
create index tasks_old on {schema}.tasks (completed_at) where completed_at is not null;
-- For lists of everybody's tasks, newest first.
create index tasks_at on {schema}.tasks (created_at desc, id desc);

-- Ends that clients want to be told of; a row comes with the end, in its transaction.
create table {schema}.task_callbacks (
  id uuid not null default gen_random_uuid(),
  account_id text not null,
  task_id text not null,
  url text not null,
  created_at timestamptz not null,
  -- Null: delivered, or given up.
  due_at timestamptz,
  lease text,
  lease_until timestamptz,
  tries integer not null default 0,
  delivered_at timestamptz,
  last_error text,
  primary key (id, account_id),
  unique (account_id, task_id),
  foreign key (account_id, task_id) references {schema}.tasks (account_id, id) on delete cascade
);
create index task_callbacks_due on {schema}.task_callbacks (due_at) where due_at is not null;

-- What callbacks are signed with, where the configuration names nothing.
create table {schema}.task_secret (
  only_row boolean primary key default true check (only_row),
  secret text not null
);
