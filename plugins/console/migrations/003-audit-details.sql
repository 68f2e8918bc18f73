-- By whom a change was made, beyond the name, and what it changed.

alter table {schema}.console_audit add column actor_kind text check (actor_kind in ('person', 'token'));
alter table {schema}.console_audit add column actor_id text;
-- A list of {field, before, after} as JSON.
alter table {schema}.console_audit add column changes text;

create or replace function {schema}.console_audit_keep() returns trigger language plpgsql as $$
begin
  if tg_op = 'UPDATE' and old.result = 'begun'
    and (new.id, new.at, new.actor, new.role, new.action, new.subject, new.address)
      is not distinct from (old.id, old.at, old.actor, old.role, old.action, old.subject, old.address)
    and (new.reason, new.actor_kind, new.actor_id, new.changes)
      is not distinct from (old.reason, old.actor_kind, old.actor_id, old.changes)
  then
    return new;
  end if;
  raise exception 'the audit log is not changed';
end
$$;
