/** How a request ended, in one word and a colour. */
import { Badge, Tooltip } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { RequestResult, RequestRow } from '../../api/types.ts';

const colors: Record<RequestResult, string> = {
  ok: 'teal',
  client_error: 'orange',
  upstream_error: 'red',
  left: 'gray',
};

/** The same division as the filter: the status of a stream that broke off says 200, its outcome says more. */
function resultOf({ status, outcome }: Pick<RequestRow, 'status' | 'outcome'>): RequestResult {
  if (outcome === 'client_left') return 'left';
  if (status >= 400 && status < 500) return 'client_error';
  return outcome === 'failed' || status >= 500 ? 'upstream_error' : 'ok';
}

export function ResultBadge({
  row,
}: {
  readonly row: Pick<RequestRow, 'status' | 'outcome' | 'errorCode' | 'errorKind'>;
}) {
  const { t } = useTranslation();
  const result = resultOf(row);
  const badge = (
    <Badge color={colors[result]} variant="light" size="sm" radius="sm" className="nowrap">
      {result === 'ok' ? t('client.result.ok') : `${row.status} ${t(`client.result.${result}`)}`}
    </Badge>
  );
  const why = row.errorCode ?? row.errorKind;
  return why === null ? badge : <Tooltip label={why}>{badge}</Tooltip>;
}
