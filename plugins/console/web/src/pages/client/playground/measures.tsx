/** What a call took: times as the browser saw them, tokens as the answer states them, the cost as it was charged. */
import { DataList } from '@mantine/core';
import { useTranslation } from 'react-i18next';
import { has, useMe } from '../../../api/session.ts';
import { TextLink } from '../../../parts/entry-frame.tsx';
import { countText, durationText } from '../../../parts/format.ts';
import { Money } from '../../../parts/money.tsx';
import { Panel } from '../../../parts/page.tsx';
import { useStory } from '../use-story.ts';
import type { Turn } from './talk.ts';

interface MeasuresProps {
  readonly turn: Turn;
  readonly busy: boolean;
  /** Its model, where there are two. */
  readonly name?: string;
}

export function Measures({ turn, busy, name }: MeasuresProps) {
  const { t, i18n } = useTranslation();
  const me = useMe();
  const asked = !busy && has(me, 'requests') ? turn.requestId : undefined;
  const { data: story } = useStory(asked);
  const count = (tokens: number | undefined) => (tokens === undefined ? '–' : countText(tokens, i18n.language));
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
        <DataList.Item>
          <DataList.ItemLabel>{t('client.playground.firstByte')}</DataList.ItemLabel>
          <DataList.ItemValue>{durationText(turn.firstByteMs)}</DataList.ItemValue>
        </DataList.Item>
        <DataList.Item>
          <DataList.ItemLabel>{t('client.playground.total')}</DataList.ItemLabel>
          <DataList.ItemValue>{durationText(turn.totalMs)}</DataList.ItemValue>
        </DataList.Item>
        <DataList.Item>
          <DataList.ItemLabel>{t('client.playground.tokens')}</DataList.ItemLabel>
          <DataList.ItemValue>
            {count(turn.tokensIn)} / {count(turn.tokensOut)}
          </DataList.ItemValue>
        </DataList.Item>
        <DataList.Item>
          <DataList.ItemLabel>{t('client.playground.cost')}</DataList.ItemLabel>
          <DataList.ItemValue>
            <Money of={story?.charge?.cost} />
          </DataList.ItemValue>
        </DataList.Item>
      </DataList>
    </Panel>
  );
}
