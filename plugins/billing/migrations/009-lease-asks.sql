-- Asks for slices and batches are numbered by their run. An ask of an earlier run, or one whose sender has given it up and gone
-- on, may still wait for a lock here: what it says of the journal is no longer so, and it must change nothing.
alter table {schema}.journal_cursor add column asked bigint not null default 0;

drop function {schema}.take_slice(text, text, text, bigint, bigint, bigint, bigint, bigint, bigint, bigint);

-- One statement for one slice, under the account's lock. Each statement in here sees what was committed before it began,
-- so the sums are true once the lock is held; the parts of one plain statement would see the state before they waited.
-- Whether the ask still counts is looked at behind that wait too, and the cursor stays locked to the end: a run that takes
-- the journal over begins after this slice, or without it.
--   ask_number  counts the asks and batches of one run; the asks of one statement have the same
--   pending     what the node's journal has taken and the ledger does not have yet; below zero: given back
--   keep        what the node goes on spending meanwhile: it is never taken from it
--   need        what the calls that wait there cost together; smallest: the cheapest of them
--   wish        what the node would like to have
--   locked      what of the balance cannot be spent while the lease lasts; null: not worked out, so that an account with
--               grants that expire gets no answer
-- `amount` is the lease afterwards; `rest` is what the node could have if nothing were locked, `allowed` what it could
-- have as it is; `elsewhere` is in the leases of other nodes that live; `held` is set aside for calls on any of them.
create function {schema}.take_slice(
  in the_node text, in the_epoch text, in ask_number bigint, in the_account text,
  in pending bigint, in keep bigint, in need bigint, in smallest bigint, in wish bigint, in locked bigint, in lasts_ms bigint,
  out owned boolean, out amount bigint, out allowed bigint, out rest bigint, out elsewhere bigint, out held bigint, out nodes bigint,
  out pooled boolean, out term text
) language plpgsql volatile as $body$
#variable_conflict use_variable
declare
  others bigint;
  ceiling bigint;
  kept bigint;
  wanted bigint;
  granted bigint;
begin
  select balances.balance, balances.held into rest, held from {schema}.balances as balances
    where balances.account_id = the_account for update;
  rest := coalesce(rest, 0);
  held := coalesce(held, 0);
  update {schema}.journal_cursor as cursors set asked = ask_number
    where cursors.journal = the_node and cursors.owner = the_epoch and cursors.asked < ask_number;
  -- The first account of a statement has noted the number for all.
  owned := found or exists (select from {schema}.journal_cursor as cursors
    where cursors.journal = the_node and cursors.owner = the_epoch and cursors.asked = ask_number);
  if not owned then return; end if;
  select greatest(count(*) filter (where cursors.journal = the_node or cursors.updated_at > clock_timestamp() - interval '15 seconds'), 1)
    into nodes from {schema}.journal_cursor as cursors;
  pooled := exists (select from {schema}.pots as pots where pots.account_id = the_account and pots.remaining > 0);
  term := (select terms.id::text from {schema}.terms as terms where terms.account_id = the_account
    order by terms.starts_at desc limit 1);
  if pooled and locked is null then return; end if;
  select coalesce(sum(greatest(leases.amount, 0)) filter (where leases.node <> the_node), 0),
      coalesce(sum(greatest(leases.amount, 0)) filter (where leases.node <> the_node and leases.expires_at > clock_timestamp()), 0),
      coalesce(sum(leases.amount) filter (where leases.node = the_node), 0)
    into others, elsewhere, kept from {schema}.leases as leases where leases.account_id = the_account;
  -- What was overspent is owed while calls run, so that what they give back pays that first.
  ceiling := case when held > 0 then rest else greatest(rest, 0) end - others;
  rest := rest - others - pending;
  allowed := greatest(rest - coalesce(locked, 0), 0);
  -- An operator may have released the lease: then there is nothing to keep.
  kept := greatest(least(keep, kept - pending), 0);
  wanted := greatest(need, kept);
  -- A share of what is there while that is enough for those who wait; near zero exactly what they need, if it is there.
  granted := case
    when allowed < smallest then kept
    else least(allowed, greatest(wanted, least(wish, allowed / nodes)))
  end;
  -- Where a settlement took more than there was, the node that posted it owes that while others have leases.
  amount := case
    when greatest(granted, kept) = 0 then least(pending, ceiling)
    else pending + greatest(granted, kept)
  end;
  if amount = 0 then
    delete from {schema}.leases as leases where leases.account_id = the_account and leases.node = the_node;
  else
    insert into {schema}.leases as leases (account_id, node, epoch, amount, expires_at)
      values (the_account, the_node, the_epoch, amount, clock_timestamp() + lasts_ms * interval '1 millisecond')
      on conflict on constraint leases_pkey
      do update set epoch = excluded.epoch, amount = excluded.amount, expires_at = excluded.expires_at;
  end if;
end
$body$;
