-- Who bears what an attempt cost: the client, for the one that it is charged for; the operator, for others that may have
-- cost something. Null: it cost nothing, as far as is known, or was written before this was.

alter table {schema}.attempts
  add column borne_by text check (borne_by in ('client', 'operator')),
  -- nano-USD at the model's official price; of all attempts of a request together the ledger's row has the sum.
  add column absorbed bigint not null default 0 check (absorbed >= 0),
  -- What it consumed, where the client is not charged for it; estimated where the vendor did not tell.
  add column consumed jsonb,
  add column estimated boolean not null default false,
  add constraint absorbed_borne check (absorbed = 0 or borne_by = 'operator');
