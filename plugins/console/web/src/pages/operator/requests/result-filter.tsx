/** Narrows a list of requests by how they ended. */
import { useTranslation } from 'react-i18next';
import { ChoiceFilter } from '../parts/filters.tsx';

const results = ['ok', 'client_error', 'upstream_error', 'left'] as const;

export function ResultFilter() {
  const { t } = useTranslation();
  return (
    <ChoiceFilter
      name="result"
      label={t('operator.traffic.requests.resultAny')}
      data={results.map((value) => ({ value, label: t(`operator.result.${value}`) }))}
    />
  );
}
