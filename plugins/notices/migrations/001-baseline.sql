-- Notices to clients: what accounts have chosen, what they are beyond, and messages on their way.

create table {schema}.notice_settings (
  account_id text primary key,
  -- The webhook; both or neither.
  url text,
  secret text,
  -- The secret before, which signs too.
  previous_secret text,
  -- In which messages are written.
  language text not null,
  check ((url is null) or (secret is not null))
);

-- A kind that is absent is as the gateway's section has it.
create table {schema}.notice_choices (
  account_id text not null,
  kind text not null,
  channels text[] not null,
  -- null: that of the gateway.
  threshold numeric,
  primary key (account_id, kind)
);

-- On which side of its threshold each subject was last.
create table {schema}.notice_states (
  account_id text not null,
  kind text not null,
  -- A key's id, a window; empty where an account has one.
  subject text not null,
  -- A new one begins on the good side.
  period text not null,
  is_beyond boolean not null,
  at timestamptz not null,
  primary key (account_id, kind, subject)
);
create index notice_states_at on {schema}.notice_states (at);

create table {schema}.notice_messages (
  account_id text not null,
  id uuid not null default gen_random_uuid(),
  kind text not null,
  channel text not null,
  message json not null,
  made_at timestamptz not null,
  -- Null: sent, or given up.
  due_at timestamptz,
  lease text,
  lease_until timestamptz,
  tries integer not null default 0,
  sent_at timestamptz,
  fault text,
  primary key (account_id, id)
);
create index notice_messages_due on {schema}.notice_messages (due_at) where due_at is not null;
create index notice_messages_made on {schema}.notice_messages (made_at);

-- Which process looks, and how far it has come.
create table {schema}.notice_look (
  one boolean primary key default true check (one),
  holder text,
  held_until timestamptz not null default '-infinity',
  -- The last movement that was looked at; null: none yet.
  movement bigint,
  -- When what ends by itself was last looked for.
  ends_at timestamptz not null default '-infinity'
);
insert into {schema}.notice_look default values;

-- Prices as they were last seen.
create table {schema}.notice_prices (
  model text primary key,
  price json not null
);
