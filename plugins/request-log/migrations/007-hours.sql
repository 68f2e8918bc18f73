-- Sums are kept by hours too. The next hour makes all parts but the first again, a few hours at a time.
delete from {schema}.request_sums where part > 0;
update {schema}.request_sums_state set folded = '-infinity';
