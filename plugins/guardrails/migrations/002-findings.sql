-- Lists of requests by what checks have found in them: by check and verdict, by verdict, and those of one account.
create index if not exists guardrail_verdicts_by_check on {schema}.guardrail_verdicts (check_name, verdict, at) where verdict <> 'passed';
create index if not exists guardrail_verdicts_by_verdict on {schema}.guardrail_verdicts (verdict, at) where verdict <> 'passed';
create index if not exists guardrail_verdicts_by_account on {schema}.guardrail_verdicts (account_id, at) where verdict <> 'passed';
