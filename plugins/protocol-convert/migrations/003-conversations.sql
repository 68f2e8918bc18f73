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
