/** What a call took: times as the browser saw them, tokens as the answer states them, the cost as it was charged. */
import { DataList } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { get } from '../../api/client.ts';
import { has, useMe } from '../../api/session.ts';
import type { RequestStory } from '../../api/types.ts';
import { TextLink } from '../../parts/entry-frame.tsx';
import { countText, durationText } from '../../parts/format.ts';
import { Money } from '../../parts/money.tsx';
import { Panel } from '../../parts/page.tsx';
import type { Turn } from './talk.ts';

export function Measures({ turn, busy }: { readonly turn: Turn; readonly busy: boolean }) {
  const { t, i18n } = useTranslation();
  const story = useCharge(turn.requestId, busy);
  const count = (tokens: number | undefined) => (tokens === undefined ? '–' : countText(tokens, i18n.language));
  return (
    <Panel
      title={t('client.playground.measures')}
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

/** The row of the call is written within a second after its end; it is asked for a few times until it is there. */
function useCharge(requestId: string | undefined, busy: boolean): RequestStory | undefined {
  const me = useMe();
  const asked = requestId !== undefined && !busy && has(me, 'requests');
  const story = useQuery({
    queryKey: ['usage', 'one', requestId],
    queryFn: () => get<RequestStory>(`/usage/${encodeURIComponent(requestId!)}`),
    enabled: asked,
    retry: 5,
    retryDelay: 800,
    refetchInterval: ({ state }) => (state.data?.charge === null && state.dataUpdateCount < 6 ? 1000 : false),
  });
  return asked ? story.data : undefined;
}
