/** Every vendor behind the gateway: how its keys are doing, how it has answered, and taking it out of use. */
import { Button, Chip, Group } from '@mantine/core';
import { IconPlugConnected } from '@tabler/icons-react';
import { Link } from '@tanstack/react-router';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { countText, durationText, shareText } from '../../../parts/format.ts';
import { Money } from '../../../parts/money.tsx';
import { Page, Panel } from '../../../parts/page.tsx';
import { type Column, RowsTable } from '../../../parts/rows-table.tsx';
import { useSearchState } from '../../../parts/search-state.ts';
import { EmptyState } from '../../../parts/states.tsx';
import { UpstreamWord, upstreamColors } from '../parts/badges.tsx';
import { Loaded, useAnswer } from '../parts/load.tsx';
import { SideDrawer } from '../parts/resource-page.tsx';
import { useNow } from '../parts/use-now.ts';
import { keyState, stateOf, type UpstreamState } from '../sums/upstream-state.ts';
import type { Upstream } from '../types.ts';
import { UpstreamDetails } from './upstream-details.tsx';

const upstreamsPath = '/admin/upstreams';
const worstFirst: readonly UpstreamState[] = ['broken', 'failing', 'cooling', 'disabled', 'healthy', 'keyless'];

export default function Upstreams() {
  const { t } = useTranslation();
  const answer = useAnswer<{ rows: readonly Upstream[] }>(upstreamsPath, {}, 5_000);
  return (
    <Page title={t('operator.traffic.upstreams.title')} hint={t('operator.traffic.upstreams.intro')}>
      <Loaded of={answer} height={320}>
        {({ rows }) => (rows.length === 0 ? <Nothing /> : <Vendors rows={rows} updatedAt={answer.dataUpdatedAt} />)}
      </Loaded>
    </Page>
  );
}

interface Row {
  readonly upstream: Upstream;
  readonly state: UpstreamState;
  /** Keys that can be used now. */
  readonly usable: number;
}

function Vendors({ rows, updatedAt }: { readonly rows: readonly Upstream[]; readonly updatedAt: number }) {
  const { t } = useTranslation();
  const [search, change] = useSearchState();
  const [all, setAll] = useState(false);
  const columns = useColumns();
  // Rests run off while one looks.
  const elapsedMs = Math.max(0, useNow(1_000) - updatedAt);
  const stated = rows.map((upstream) => rowOf(upstream, elapsedMs));
  const open = stated.find(({ upstream }) => upstream.provider === search['provider']);
  const fitting = stated
    .filter(({ state }) => search['state'] === undefined || search['state'] === state)
    .sort((left, right) => worstFirst.indexOf(left.state) - worstFirst.indexOf(right.state));
  const busy = fitting.filter((row) => !isIdle(row));
  const idle = fitting.length - busy.length;
  const folds = busy.length > 0 && idle > 0 && search['state'] === undefined;
  return (
    <>
      <StateChips states={stated.map(({ state }) => state)} />
      <Panel flush>
        <RowsTable
          label={t('operator.traffic.upstreams.title')}
          columns={columns}
          rows={folds && !all ? busy : fitting}
          rowKey={({ upstream }) => upstream.provider}
          onOpen={({ upstream }) => change({ provider: upstream.provider })}
          footer={
            folds && (
              <Button size="xs" variant="subtle" onClick={() => setAll(!all)}>
                {t(`operator.traffic.upstreams.${all ? 'hideIdle' : 'showIdle'}`, { count: idle })}
              </Button>
            )
          }
        />
      </Panel>
      <SideDrawer
        title={open?.upstream.provider}
        content={open && <UpstreamDetails {...open} elapsedMs={elapsedMs} />}
        onClose={() => change({ provider: undefined })}
      />
    </>
  );
}

function rowOf(upstream: Upstream, elapsedMs: number): Row {
  const usable = upstream.keys.filter((key) => ['ready', 'partly'].includes(keyState(key, elapsedMs))).length;
  return { upstream, state: stateOf(upstream, elapsedMs), usable };
}

/** Nothing of it asks for a look. */
const isIdle = ({ upstream: { lastHour }, state }: Row) =>
  (lastHour === null || lastHour.requests === 0) && (state === 'healthy' || state === 'keyless');

function useColumns(): readonly Column<Row>[] {
  const { t, i18n } = useTranslation();
  const count = (of: number | undefined) => (of === undefined ? '–' : countText(of, i18n.language));
  const hour = ({ upstream }: Row) => upstream.lastHour ?? undefined;
  return [
    {
      key: 'provider',
      title: t('shell.word.provider'),
      cell: ({ upstream }) => upstream.provider,
      plain: ({ upstream }) => upstream.provider,
    },
    { key: 'state', title: t('shell.word.state'), cell: ({ state }) => <UpstreamWord state={state} /> },
    {
      key: 'requests',
      title: t('shell.word.requests'),
      right: true,
      cell: (row) => count(hour(row)?.requests),
      plain: (row) => hour(row)?.requests,
    },
    {
      key: 'success',
      title: t('operator.column.success'),
      right: true,
      cell: (row) => {
        const sums = hour(row);
        return sums === undefined ? '–' : shareText(sums.results.ok, sums.requests, i18n.language);
      },
    },
    {
      key: 'errors',
      title: t('operator.column.errors'),
      right: true,
      minor: true,
      cell: (row) => count(hour(row)?.results.upstream_error),
      plain: (row) => hour(row)?.results.upstream_error,
    },
    {
      key: 'first-byte',
      title: `${t('shell.word.firstByte')} p50`,
      right: true,
      minor: true,
      cell: (row) => durationText(hour(row)?.firstByte.p50),
      plain: (row) => hour(row)?.firstByte.p50,
    },
    {
      key: 'cost',
      title: t('operator.column.ownCost'),
      right: true,
      cell: ({ upstream }) => <Money of={upstream.ownCost} />,
      plain: ({ upstream }) => upstream.ownCost,
    },
    {
      key: 'keys',
      title: t('operator.traffic.upstreams.keys'),
      right: true,
      minor: true,
      cell: ({ upstream, usable }) => `${count(usable)} / ${count(upstream.keys.length)}`,
      plain: ({ usable }) => usable,
    },
  ];
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
