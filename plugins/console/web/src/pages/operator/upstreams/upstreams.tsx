/** Every vendor behind the gateway: how its keys are doing, how it has answered, and taking it out of use. */
import { Button, Chip, Group, SimpleGrid } from '@mantine/core';
import { IconPlugConnected } from '@tabler/icons-react';
import { Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { Page, Panel } from '../../../parts/page.tsx';
import { useSearchState } from '../../../parts/search-state.ts';
import { EmptyState } from '../../../parts/states.tsx';
import { upstreamColors } from '../parts/badges.tsx';
import { Loaded, useAnswer } from '../parts/load.tsx';
import { useNow } from '../parts/use-now.ts';
import { stateOf, type UpstreamState } from '../sums/upstream-state.ts';
import type { Upstream } from '../types.ts';
import { UpstreamCard } from './upstream-card.tsx';

const upstreamsPath = '/admin/upstreams';
const worstFirst: readonly UpstreamState[] = ['broken', 'failing', 'cooling', 'disabled', 'healthy', 'keyless'];

export default function Upstreams() {
  const { t } = useTranslation();
  const answer = useAnswer<{ rows: readonly Upstream[] }>(upstreamsPath, {}, 5_000);
  return (
    <Page title={t('operator.traffic.upstreams.title')} hint={t('operator.traffic.upstreams.intro')}>
      <Loaded of={answer} height={320}>
        {({ rows }) => (rows.length === 0 ? <Nothing /> : <Cards rows={rows} updatedAt={answer.dataUpdatedAt} />)}
      </Loaded>
    </Page>
  );
}

function Cards({ rows, updatedAt }: { readonly rows: readonly Upstream[]; readonly updatedAt: number }) {
  const [search] = useSearchState();
  // Rests run off while one looks.
  const elapsedMs = Math.max(0, useNow(1_000) - updatedAt);
  const stated = rows.map((upstream) => ({ upstream, state: stateOf(upstream, elapsedMs) }));
  const shown = stated
    .filter(({ state }) => search['state'] === undefined || search['state'] === state)
    .filter(({ upstream }) => search['provider'] === undefined || upstream.provider === search['provider'])
    .sort((left, right) => worstFirst.indexOf(left.state) - worstFirst.indexOf(right.state));
  return (
    <>
      <StateChips states={stated.map(({ state }) => state)} />
      <SimpleGrid type="container" cols={{ base: 1, '720px': 2, '1180px': 3 }} spacing="sm">
        {shown.map(({ upstream, state }) => (
          <UpstreamCard key={upstream.provider} upstream={upstream} state={state} elapsedMs={elapsedMs} />
        ))}
      </SimpleGrid>
    </>
  );
}

function Nothing() {
  const { t } = useTranslation();
  return (
    <Panel>
      <EmptyState
        icon={IconPlugConnected}
        title={t('operator.traffic.upstreams.empty')}
        hint={t('operator.traffic.upstreams.emptyHint')}
        action={
          <Button variant="default" renderRoot={(props) => <Link {...props} to="/admin/config" />}>
            {t('operator.traffic.upstreams.toConfig')}
          </Button>
        }
      />
    </Panel>
  );
}

/** How many upstreams are in which state; a chip shows these alone. */
function StateChips({ states }: { readonly states: readonly UpstreamState[] }) {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  const present = [...new Set(states)];
  if (present.length < 2 && search['state'] === undefined) return null;
  return (
    <Group gap="xs">
      {present.map((state) => (
        <Chip
          key={state}
          size="xs"
          color={upstreamColors[state]}
          variant="light"
          checked={search['state'] === state}
          onChange={(checked) => change({ state: checked ? state : undefined })}
        >
          {t(`operator.traffic.upstreams.state.${state}`)} · {states.filter((one) => one === state).length}
        </Chip>
      ))}
    </Group>
  );
}
