/** An operator's first page: health, open set-up steps, use and failures. */
import { Anchor, Group, SimpleGrid, Stack, Text } from '@mantine/core';
import { IconCircle, IconCircleCheck } from '@tabler/icons-react';
import { Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { has, useInfo, useMe } from '../../../api/session.ts';
import { Shares } from '../../../parts/bars.tsx';
import { chartNumber, countText, durationText, shareText } from '../../../parts/format.ts';
import { Money } from '../../../parts/money.tsx';
import { Page, Panel } from '../../../parts/page.tsx';
import { Stat, StatRow } from '../../../parts/stat.tsx';
import { Waiting } from '../../../parts/states.tsx';
import { viewerZone } from '../../../parts/zone.tsx';
import { alertsPath } from '../alerts/alert-texts.ts';
import { useActs } from '../parts/act.tsx';
import { Loaded, useAnswer } from '../parts/load.tsx';
import { MarginStat } from '../parts/margin.tsx';
import { RowLink, shortId, useAccountNames } from '../parts/names.tsx';
import { usdChange } from '../sums/usd.ts';
import type { Alert, FailureCauses, Group as GroupRow, Monitor, Page as PageOf, Person, Upstream } from '../types.ts';
import { doneSteps, type Facts, type Finding, findingsIn, mild, type Step, steps } from './findings.ts';

const everyMs = 30_000;
/** Nothing is asked for that this gateway has not. */
function useFacts(): Facts {
  const me = useMe();
  const upstreams = useAnswer<{ rows: readonly Upstream[] }>('/admin/upstreams', {}, everyMs, has(me, 'upstreams'));
  const prices = useAnswer<{ rows: readonly { prices: object | null }[] }>(
    '/admin/prices',
    {},
    false,
    has(me, 'prices'),
  );
  const day = useAnswer<Monitor>('/admin/monitor', { tz: viewerZone }, everyMs, has(me, 'requests'));
  const people = useAnswer<PageOf<Person>>('/admin/people', { limit: 2 });
  const alerts = useAnswer<PageOf<Alert>>(alertsPath, { state: 'running', limit: 100 }, everyMs, has(me, 'alerts'));
  const rows = prices.data?.rows;
  return {
    upstreams: has(me, 'upstreams') ? upstreams.data?.rows : [],
    models: rows && { all: rows.length, unpriced: rows.filter((row) => row.prices === null).length },
    day: day.data,
    alerts: alerts.data?.rows.length,
    people: people.data?.rows.length,
    mail: useInfo()?.mail ?? false,
  };
}

export default function Overview() {
  const { t } = useTranslation();
  const me = useMe();
  const facts = useFacts();
  return (
    <Page title={t('operator.overview.title')} hint={t('operator.overview.intro')}>
      <Health facts={facts} />
      <Checklist facts={facts} />
      {has(me, 'requests') && (
        <>
          {facts.day === undefined ? <Waiting height={96} /> : <Figures day={facts.day} />}
          <SimpleGrid cols={{ base: 1, md: 2 }} spacing="sm">
            <Accounts />
            <Errors />
          </SimpleGrid>
        </>
      )}
    </Page>
  );
}

const pageOf: Record<Finding, { readonly to: string; readonly search?: Readonly<Record<string, string>> }> = {
  alerts: { to: '/admin/alerts', search: { state: 'running' } },
  broken: { to: '/admin/upstreams', search: { state: 'broken' } },
  failing: { to: '/admin/upstreams', search: { state: 'failing' } },
  errors: { to: '/admin/requests', search: { result: 'upstream_error' } },
  few: { to: '/admin/requests', search: { result: 'upstream_error' } },
  loss: { to: '/admin/money' },
  unpriced: { to: '/admin/prices' },
};

/** One sentence: all is well, or the problem. */
function Health({ facts }: { readonly facts: Facts }) {
  const { t } = useTranslation();
  const found = findingsIn(facts);
  const isBad = found.some(({ finding }) => !mild.includes(finding));
  return (
    <div className="banner" data-tone={isBad ? 'bad' : found.length > 0 ? 'near' : 'good'} role="status">
      {found.length === 0 && t('operator.overview.well')}
      {found.map(({ finding, count, names }, index) => (
        <span key={finding}>
          {index > 0 && ' · '}
          <Anchor
            inherit
            c="inherit"
            underline="always"
            renderRoot={(props) => <Link {...props} {...pageOf[finding]} />}
          >
            {t(`operator.overview.finding.${finding}`, { count })}
          </Anchor>
          {names.length > 0 && ` (${names.slice(0, 3).join(', ')})`}
        </span>
      ))}
    </div>
  );
}

const stepPage: Record<Step, string> = {
  vendor: '/admin/config',
  price: '/admin/prices',
  people: '/admin/people',
  mail: '/admin/config',
  call: '/admin/upstreams',
};

/** Until everything is done once. */
function Checklist({ facts }: { readonly facts: Facts }) {
  const { t } = useTranslation();
  const acts = useActs();
  const done = doneSteps(facts);
  if (!acts || done === undefined || done.size === steps.length) return null;
  return (
    <Panel title={t('operator.overview.checklist')} hint={t('operator.overview.checklistHint')}>
      <Stack gap={6}>
        {steps.map((step) => (
          <Group key={step} gap="xs" wrap="nowrap">
            {done.has(step) ? (
              <IconCircleCheck
                size={17}
                className="check"
                style={{ flexShrink: 0 }}
                aria-label={t('operator.overview.done')}
              />
            ) : (
              <IconCircle size={17} style={{ flexShrink: 0 }} aria-label={t('operator.overview.open')} />
            )}
            {done.has(step) ? (
              <Text fz="sm" c="dimmed">
                {t(`operator.overview.step.${step}`)}
              </Text>
            ) : (
              <RowLink to={stepPage[step]}>{t(`operator.overview.step.${step}`)}</RowLink>
            )}
          </Group>
        ))}
      </Stack>
    </Panel>
  );
}

const dayMs = 86_400_000;

/** The 24 hours before the last ones. */
function useDayBefore(): Monitor | undefined {
  const until = Math.floor(Date.now() / 60_000) * 60_000 - dayMs;
  const iso = (at: number) => new Date(at).toISOString();
  return useAnswer<Monitor>('/admin/monitor', { from: iso(until - dayMs), until: iso(until), tz: viewerZone }).data;
}

function Figures({ day }: { readonly day: Monitor }) {
  const { t, i18n } = useTranslation();
  const before = useDayBefore();
  const monitor = { to: '/admin/monitor', search: { span: '24h' } };
  return (
    <StatRow>
      <Stat
        label={t('operator.overview.requests')}
        value={countText(day.requests, i18n.language)}
        change={[day.requests, before?.requests]}
        note={
          <>
            {t('client.usage.succeeded', {
              share: shareText(day.results.ok, day.requests, i18n.language),
            })}
            {day.refused > 0 && ` · ${t('client.usage.unserved', { number: countText(day.refused, i18n.language) })}`}
          </>
        }
        {...monitor}
      />
      <Stat
        label={t('operator.column.cost')}
        value={<Money of={day.cost} />}
        change={usdChange(day.cost, before?.cost)}
        to="/admin/money"
      />
      <MarginStat sums={day} before={before} to="/admin/money" />
      <Stat
        label={t('operator.overview.firstByte')}
        value={durationText(day.firstByte.p50)}
        change={[day.firstByte.p50, before?.firstByte.p50]}
        {...monitor}
      />
    </StatRow>
  );
}

const mostFirst = (left: GroupRow, right: GroupRow) => Number(right.cost ?? 0) - Number(left.cost ?? 0);

function Accounts() {
  const { t } = useTranslation();
  const names = useAccountNames();
  const groups = useAnswer<{ rows: readonly GroupRow[] }>(
    '/admin/monitor/groups',
    { by: 'account', limit: 8 },
    everyMs,
  );
  return (
    <Panel title={t('operator.overview.accounts')}>
      <Loaded of={groups} height={180}>
        {({ rows }) =>
          rows.length === 0 ? (
            <Quiet />
          ) : (
            <Shares
              of={rows.toSorted(mostFirst).map(({ group, requests, cost }) => ({
                key: group,
                name: (
                  <RowLink to={`/admin/accounts/${encodeURIComponent(group)}`}>
                    {names?.get(group) ?? shortId(group)}
                  </RowLink>
                ),
                size: cost === null ? requests : chartNumber(cost),
                value: cost === null ? requests : <Money of={cost} />,
              }))}
            />
          )
        }
      </Loaded>
    </Panel>
  );
}

function Errors() {
  const { t } = useTranslation();
  const failed = useAnswer<FailureCauses>('/admin/monitor/causes', { result: 'upstream_error' }, everyMs);
  return (
    <Panel title={t('operator.overview.errors')} hint={t('operator.overview.errorsHint')}>
      <Loaded of={failed} height={180}>
        {({ rows }) =>
          rows.length === 0 ? (
            <Text fz="sm" c="dimmed">
              {t('operator.overview.noErrors')}
            </Text>
          ) : (
            <Shares
              of={rows.slice(0, 8).map(({ cause, requests }) => ({
                key: cause,
                name: (
                  <RowLink to="/admin/requests" search={{ result: 'upstream_error', cause }}>
                    {cause}
                  </RowLink>
                ),
                size: requests,
                value: requests,
              }))}
            />
          )
        }
      </Loaded>
    </Panel>
  );
}

function Quiet() {
  const { t } = useTranslation();
  return (
    <Text fz="sm" c="dimmed">
      {t('operator.traffic.monitor.empty')}
    </Text>
  );
}
