-- Answers of the responses protocol that clients may come back to, for as long as their lifetime lasts.

create table {schema}.kept_responses (
  account_id text not null,
  id text not null,
  -- kept: the gateway has the whole conversation. relayed: an upstream has it, and only the way there is known.
  kind text not null check (kind in ('kept', 'relayed')),
  -- Ids of the answer's items: requests may refer to one of them alone.
  item_ids text[] not null,
  -- JSON, as text: a JSON column refuses texts with a zero character, which models do write.
  input text,
  response text,
  provider text,
  credential text,
  protocol text,
  -- What the conversation came to with this answer; null where the upstream did not tell.
  tokens bigint,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (account_id, id),
  constraint kept_whole check (kind <> 'kept' or (input is not null and response is not null)),
  constraint relayed_whole check (kind <> 'relayed' or (provider is not null and credential is not null and protocol is not null))
);

create index kept_responses_items on {schema}.kept_responses using gin (item_ids);
create index kept_responses_expiry on {schema}.kept_responses (expires_at);

-- Ids of files, containers and the like that vendors issued in answers: the account that got one may use it again.
create table {schema}.issued_ids (
  account_id text not null,
  id text not null,
  -- Who keeps what it names, and the key that reaches it.
  provider text not null,
  credential text not null,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (account_id, id)
);

create index issued_ids_expiry on {schema}.issued_ids (expires_at);

-- Conversations of the responses protocol that the gateway keeps, with their items, for as long as their lifetime lasts.
create table {schema}.kept_conversations (
  account_id text not null,
  id text not null,
  -- JSON, as text: a JSON column refuses texts with a zero character.
  metadata text not null,
  -- Of its items.
  item_count integer not null default 0,
  bytes bigint not null default 0,
  last_position bigint not null default 0,
  created_at timestamptz not null,
  expires_at timestamptz not null,
  primary key (account_id, id)
);

create index kept_conversations_expiry on {schema}.kept_conversations (expires_at);

create table {schema}.kept_conversation_items (
  account_id text not null,
  conversation_id text not null,
  id text not null,
  position bigint not null,
  -- What appended it: a block is there once, however often it is written.
  block text not null,
  bytes integer not null,
  item text not null,
  primary key (account_id, conversation_id, id),
  foreign key (account_id, conversation_id) references {schema}.kept_conversations (account_id, id) on delete cascade
);

-- The secret that seals are made with where none is configured, and marks of those that were used.
create table {schema}.seal_settings (
  name text primary key,
  value text not null
);
