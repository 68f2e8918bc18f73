/** What a call took: times as the browser saw them, what the answer states, the cost as it was charged. */
import { DataList } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { has, useMe } from '../../../api/session.ts';
import { TextLink } from '../../../parts/entry-frame.tsx';
import { Money } from '../../../parts/money.tsx';
import { Panel } from '../../../parts/page.tsx';
import { useStory } from '../use-story.ts';

interface MeasuresProps {
  readonly facts: readonly (readonly [label: string, value: string])[];
  readonly requestId: string | undefined;
  readonly busy: boolean;
  /** The model, where there are two. */
  readonly name?: string;
  /** What it was charged beside its own row, in USD; absent: the charge of its row. */
  readonly cost?: string;
}

export function Measures({ facts, requestId, busy, name, cost }: MeasuresProps) {
  const { t } = useTranslation();
  const me = useMe();
  const requested = !busy && has(me, 'requests') ? requestId : undefined;
  const { data: story } = useStory(requested);
  return (
    <Panel
      title={name ?? t('client.playground.measures')}
      actions={
        story !== undefined && (
          <TextLink to="/usage" search={{ open: story.request.id }}>
            {t('client.usage.formula')}
          </TextLink>
        )
      }
    >
      <DataList size="sm" gap={6} labelWidth={120}>
        {facts.map(([label, value]) => (
          <DataList.Item key={label}>
            <DataList.ItemLabel>{label}</DataList.ItemLabel>
            <DataList.ItemValue>{value}</DataList.ItemValue>
          </DataList.Item>
        ))}
        <DataList.Item>
          <DataList.ItemLabel>{t('shell.word.cost')}</DataList.ItemLabel>
          <DataList.ItemValue data-testid="cost">
            <Money of={cost ?? story?.charge?.cost} />
          </DataList.ItemValue>
        </DataList.Item>
      </DataList>
    </Panel>
  );
}
