-- Tags that have had a budget, of an account each, and what their calls have cost since: sums by tag are of the first tags of an hour alone,
-- and a budget counts all.
create table if not exists {schema}.budget_tags (
  account_id text not null,
  -- NAME=VALUE.
  tag text collate "C" not null,
  since timestamptz not null default clock_timestamp(),
  primary key (account_id, tag)
);

-- By quarters of an hour, as sums by tag.
create table if not exists {schema}.tag_spending (
  account_id text not null,
  tag text collate "C" not null,
  at timestamptz not null,
  cost bigint not null,
  primary key (account_id, tag, at)
) with (fillfactor = 90);
