-- Batches of requests that clients order, and their lines. Times are the database's.

create table {schema}.batches (
  id text not null,
  account_id text not null,
  -- Its key and its address are checked again for each line.
  key_id text not null,
  remote_address text not null,
  dialect text not null check (dialect in ('chat', 'messages', 'gemini')),
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
  -- The charge of all lines of an ended batch, in nano-USD. Null: unknown.
  cost bigint,
  -- Tokens of the finished lines, as OpenAI tells them; null: of batches that ended before they were summed up.
  usage text,
  -- The request that ordered it, and its span as W3C trace context; null: not traced.
  request_id text,
  trace text,
  -- Workers have the id alone.
  primary key (id, account_id),
  check ((state = 'ended') = (outcome is not null))
);

create index batches_due on {schema}.batches (due_at) where state <> 'ended';
create index batches_of_account on {schema}.batches (account_id, created_at, id);
-- Batches of all accounts, newest first, for operators: any, those in one state, those of one endpoint. A batch changes its
-- state three times, which writes an entry in each of its indexes; what renews its lease writes none.
create index batches_newest on {schema}.batches (created_at, id);
create index batches_by_state on {schema}.batches (coalesce(outcome, state), created_at, id);
create index batches_by_endpoint on {schema}.batches
  (regexp_replace(endpoint, '^(/v1beta/models/)[^/]+:', '\1{model}:'), created_at, id);

create table {schema}.batch_lines (
  account_id text not null,
  batch_id text not null,
  number integer not null,
  custom_id text not null,
  -- Where it stands in the input.
  first_byte bigint not null,
  bytes integer not null,
  -- waiting: it may be sent. running: it may have been sent. done: its answer is known. placed: money is set aside for it, and
  -- it belongs to a vendor's batch; `request_id` names its authorization.
  state text not null default 'waiting' check (state in ('waiting', 'placed', 'running', 'done')),
  due_at timestamptz not null default now(),
  -- The worker that has sent it, and when it was sent first.
  lease text,
  sent_at timestamptz,
  result text check (result in ('succeeded', 'errored', 'cancelled', 'expired')),
  status integer,
  request_id text,
  -- The answer's body.
  answer text,
  -- Its charge in nano-USD. Null: unknown.
  cost bigint,
  -- What is set aside for it, in nano-USD, and the request as the vendor is to get it.
  held bigint,
  request text,
  primary key (batch_id, number, account_id),
  foreign key (account_id, batch_id) references {schema}.batches (account_id, id) on delete cascade,
  check ((state = 'done') = (result is not null))
);

create index batch_lines_open on {schema}.batch_lines (batch_id, due_at) where state <> 'done';

-- Batches that a vendor's own batch API makes, for each line of which money is set aside.
create table {schema}.vendor_batches (
  account_id text not null,
  batch_id text not null,
  provider text not null,
  protocol text not null,
  -- The vendor's name of the model, and the client's.
  model text not null,
  asked text not null,
  credential text,
  -- preparing: lines are placed. uploading, ordering: due, or sent perhaps (`sent_at`). running: the vendor has it.
  -- reading: the vendor has ended it, and its results are read. ended: nothing of it is open.
  state text not null check (state in ('preparing', 'uploading', 'ordering', 'running', 'reading', 'ended')),
  sent_at timestamptz,
  -- When the order was accepted.
  ordered_at timestamptz,
  lines integer not null default 0,
  file_id text,
  vendor_id text,
  cancel_sent boolean not null default false,
  -- How the vendor ended it, and where its results are.
  results json,
  primary key (batch_id, account_id),
  foreign key (account_id, batch_id) references {schema}.batches (account_id, id) on delete cascade
);

create index vendor_batches_by_vendor on {schema}.vendor_batches (vendor_id);
