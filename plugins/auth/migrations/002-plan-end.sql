-- When the account's plan ends and the default plan takes its place; null: it does not end.
alter table {schema}.accounts add column plan_ends_at timestamptz;
