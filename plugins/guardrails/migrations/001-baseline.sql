-- What checks have found in calls: never the content itself.
create table {schema}.guardrail_verdicts (
  account_id text not null,
  request_id text not null,
  check_name text not null,
  -- prompt or answer
  stage text not null,
  -- passed, masked, refused, logged, broken
  verdict text not null,
  findings integer not null,
  milliseconds integer not null,
  -- Of what was found, by a key of this gateway: the same finding has the same one. Empty: nothing was found, or no place was named.
  digest text not null,
  -- What a person has said of the finding: false. Empty: nothing.
  mark text not null default '',
  at timestamptz not null,
  primary key (account_id, request_id, check_name, stage)
);
create index guardrail_verdicts_at on {schema}.guardrail_verdicts (at);
create index guardrail_verdicts_findings on {schema}.guardrail_verdicts (at) where verdict <> 'passed';

-- The key of digests and seals.
create table {schema}.guardrail_digest_key (
  is_only boolean primary key default true check (is_only),
  key text not null
);

-- What placeholders of a conversation stand for, sealed: for an answer by which it goes on, or for the conversation.
create table {schema}.guardrail_placeholders (
  account_id text not null,
  answer_id text not null,
  sealed text not null,
  at timestamptz not null,
  primary key (account_id, answer_id)
);
create index guardrail_placeholders_at on {schema}.guardrail_placeholders (at);
