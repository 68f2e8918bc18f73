-- Credit that an account has each month: each row is an operator's decision, and the one with the highest number counts. 0: no more.
create table if not exists {schema}.credit_lines (
  account_id text not null,
  number integer not null check (number > 0),
  amount bigint not null check (amount >= 0),
  reason text not null,
  set_at timestamptz not null,
  primary key (account_id, number)
);
create or replace trigger immutable before update or delete or truncate on {schema}.credit_lines
  for each statement execute function {schema}.refuse_ledger_change();

create index if not exists grants_credit on {schema}.grants (account_id) where kind = 'credit_line';

-- A credit line that is stopped in the middle of a month ends before the month does.
comment on column {schema}.grant_balances.expires_at is 'That of the grant; of a credit line that was stopped or lowered, when its grant ends';
