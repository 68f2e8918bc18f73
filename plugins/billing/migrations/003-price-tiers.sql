-- Which tiers of the price version a call was charged by, and what the call cost the operator, where that is known.

alter table {schema}.usage add column tier text;
alter table {schema}.usage add column own_cost bigint check (own_cost >= 0);
