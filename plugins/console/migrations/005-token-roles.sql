-- A token reads as an auditor does, or changes as an operator does.
alter table {schema}.console_tokens add column role text not null default 'operator' check (role in ('auditor', 'operator'));
