-- What a provider's claims gave a person last, so that only a change of them changes anything; and by which provider a session began.

alter table {schema}.console_people add column claimed_role text;
alter table {schema}.console_people add column claimed_plan text;
alter table {schema}.console_sessions add column provider_id text;
