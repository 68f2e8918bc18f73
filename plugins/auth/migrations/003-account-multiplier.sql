-- The account's own price ratio, as an operator writes it (`0.9`); null: 1.

alter table {schema}.accounts add column multiplier text;
