/** What a row of the client's calls shows. */
import { Text, Tooltip } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { RequestRow } from '../../api/types.ts';
import { durationColumn, moneyColumn, textColumn, timeColumn } from '../../parts/columns.tsx';
import { countText } from '../../parts/format.ts';
import type { Column } from '../../parts/rows-table.tsx';
import { ResultBadge } from './result-badge.tsx';

export function useRequestColumns(): readonly Column<RequestRow>[] {
  const { t } = useTranslation();
  return [
    timeColumn('receivedAt', t('client.usage.time')),
    textColumn('model', t('client.usage.model')),
    textColumn('operation', t('client.usage.operation'), { minor: true, cell: operationCell }),
    textColumn('status', t('client.usage.result'), { cell: (row) => <ResultBadge row={row} /> }),
    { key: 'tokens', title: t('client.usage.tokens'), right: true, cell: (row) => <Tokens usage={row.usage} /> },
    { ...durationColumn<RequestRow>('first', t('client.usage.first'), (row) => row.firstByteMs), minor: true },
    durationColumn('total', t('client.usage.duration'), (row) => row.totalMs),
    moneyColumn('cost', t('client.usage.cost'), (row) => row.cost),
  ];
}

function operationCell({ operation }: RequestRow) {
  return (
    <Text span inherit c="dimmed">
      {operation}
    </Text>
  );
}

const inputClasses = [
  ...['input', 'cache_read', 'cache_write_5m', 'cache_write_1h', 'input_audio', 'input_image'],
  ...['cache_read_audio', 'cache_read_image'],
];
const outputClasses = ['output', 'reasoning', 'output_audio', 'output_image'];

/** Tokens that went in and came out; what is counted in pieces is named on hover. */
function Tokens({ usage }: { readonly usage: RequestRow['usage'] }) {
  const { i18n } = useTranslation();
  if (usage === null) return <span>–</span>;
  const sum = (names: readonly string[]) => names.reduce((total, name) => total + (usage[name] ?? 0), 0);
  const [into, out] = [sum(inputClasses), sum(outputClasses)];
  const pieces = Object.entries(usage).filter(
    ([name, count]) => count > 0 && name !== 'request' && !inputClasses.includes(name) && !outputClasses.includes(name),
  );
  const words = Object.entries(usage).map(([name, count]) => `${name} ${countText(count, i18n.language)}`);
  const short =
    into + out > 0
      ? `${countText(into, i18n.language)} → ${countText(out, i18n.language)}`
      : pieces.map(([name, count]) => `${countText(count, i18n.language)} × ${name}`).join(', ');
  return (
    <Tooltip label={words.join(' · ')} multiline maw={300}>
      <span className="number nowrap">{short === '' ? '–' : short}</span>
    </Tooltip>
  );
}
