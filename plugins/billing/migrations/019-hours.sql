-- Sums are kept by hours too. The next hour makes all parts but the first again, a few hours at a time.
delete from {schema}.call_sums where part > 0;
update {schema}.call_sums_state set folded = '-infinity';
