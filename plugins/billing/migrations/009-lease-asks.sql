-- Asks for slices are numbered by the run that asks. A statement of an earlier run, or one whose sender has given it up and
-- asked again, may still wait for a lock here: what it says of the journal is no longer so, and it must change nothing.
alter table {schema}.journal_cursor add column asked bigint not null default 0;

-- `take_slice` for ask number `ask_number` of a run. Whether it still counts is looked at behind the wait for the account's
-- lock, and the cursor stays locked to the end: a run that takes the journal over begins after this slice, or without it.
create function {schema}.ask_slice(
  in the_node text, in the_epoch text, in ask_number bigint, in the_account text,
  in pending bigint, in keep bigint, in need bigint, in smallest bigint, in wish bigint, in locked bigint, in lasts_ms bigint,
  out owned boolean, out amount bigint, out allowed bigint, out rest bigint, out elsewhere bigint, out held bigint, out nodes bigint,
  out pooled boolean, out term text
) language plpgsql volatile as $body$
begin
  perform from {schema}.balances as balances where balances.account_id = the_account for update;
  update {schema}.journal_cursor as cursors set asked = ask_number
    where cursors.journal = the_node and cursors.owner = the_epoch and cursors.asked < ask_number;
  if not found then
    -- Of the accounts in one statement the first has noted its number.
    perform from {schema}.journal_cursor as cursors
      where cursors.journal = the_node and cursors.owner = the_epoch and cursors.asked = ask_number;
    if not found then
      owned := false;
      return;
    end if;
  end if;
  select slice.owned, slice.amount, slice.allowed, slice.rest, slice.elsewhere, slice.held, slice.nodes, slice.pooled, slice.term
    into owned, amount, allowed, rest, elsewhere, held, nodes, pooled, term
    from {schema}.take_slice(the_node, the_epoch, the_account, pending, keep, need, smallest, wish, locked, lasts_ms) as slice;
end
$body$;
