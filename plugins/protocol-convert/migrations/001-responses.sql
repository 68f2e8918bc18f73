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
