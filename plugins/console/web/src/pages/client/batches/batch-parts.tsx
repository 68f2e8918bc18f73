/** The state of a batch in a word, and how far it is. */
import { Badge, Text } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import type { BatchRow } from '../../../api/types.ts';
import { Meter } from '../../../parts/bars.tsx';
import { countText } from '../../../parts/format.ts';
import '../file-texts.ts';

type Counted = Pick<BatchRow, 'succeeded' | 'errored' | 'total' | 'outcome'>;
type Standing = Pick<BatchRow, 'state' | 'outcome' | 'cancelAt'>;

export const madeOf = ({ succeeded, errored }: Pick<Counted, 'succeeded' | 'errored'>) => succeeded + errored;

export function Done({ batch }: { readonly batch: Counted }) {
  const { t, i18n } = useTranslation();
  if (batch.total === 0) return '–';
  const [made, total] = [madeOf(batch), batch.total].map((count) => countText(count, i18n.language));
  const text = t('client.batches.doneOf', { made, total });
  return (
    <div>
      {text}
      {batch.outcome === null && <Meter part={madeOf(batch)} whole={batch.total} label={text} />}
    </div>
  );
}

/** Success is plain text: colour marks states that need attention. */
export function BatchState({ batch: { state, outcome, cancelAt } }: { readonly batch: Standing }) {
  const { t } = useTranslation();
  const word = outcome ?? (cancelAt === null ? state : 'cancelling');
  if (word === 'completed' || word === 'ended')
    return (
      <Text span inherit c="dimmed">
        {t('client.batches.states.completed')}
      </Text>
    );
  return (
    <Badge size="sm" radius="sm" variant="light" color={colors[word]} className="nowrap">
      {t(`client.batches.states.${word}`)}
    </Badge>
  );
}

const colors = {
  validating: 'gray',
  running: 'blue',
  finishing: 'blue',
  cancelling: 'gray',
  failed: 'red',
  cancelled: 'gray',
  expired: 'orange',
} as const;
