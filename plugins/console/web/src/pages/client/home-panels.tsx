/** Panels of a client's first page: spend over days and by model, and what failed last. */
import { Anchor, Group, Stack, Text } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import type { Home, RequestRow } from '../../api/types.ts';
import { Columns, Shares } from '../../parts/bars.tsx';
import { chartNumber, countText, moneyText } from '../../parts/format.ts';
import { Money } from '../../parts/money.tsx';
import { Panel } from '../../parts/page.tsx';
import { Time } from '../../parts/time.tsx';
import { ZoneName } from '../../parts/zone.tsx';
import { ResultBadge } from './result-badge.tsx';

export function SpendByDay({ days, tz }: { readonly days: Home['byDay']; readonly tz: string }) {
  const { t, i18n } = useTranslation();
  const day = new Intl.DateTimeFormat(i18n.language, { day: 'numeric', month: 'short', timeZone: tz });
  const columns = days.map(({ at, requests, spent }) => ({
    key: at,
    size: spent === null ? requests : chartNumber(spent),
    words: t('client.home.dayWords', {
      day: day.format(new Date(at)),
      cost: spent === null ? '–' : moneyText(spent, i18n.language),
      requests: t('client.home.requests', { count: requests, number: countText(requests, i18n.language) }),
    }),
  }));
  const [first, last] = [days[0], days.at(-1)];
  return (
    <Panel title={t('client.home.byDay')} actions={<ZoneName />}>
      {first === undefined || last === undefined ? (
        <Quiet />
      ) : (
        <Columns
          of={columns}
          label={t('client.home.byDay')}
          ends={[day.format(new Date(first.at)), day.format(new Date(last.at))]}
        />
      )}
    </Panel>
  );
}

export function SpendByModel({ models }: { readonly models: Home['byModel'] }) {
  const { t } = useTranslation();
  const shares = models.map(({ model, requests, spent }) => ({
    key: model,
    name: (
      <Anchor
        c="inherit"
        renderRoot={(props) => <Link {...props} to="/usage" search={{ span: '30d', model }} />}
        fz="sm"
      >
        {model}
      </Anchor>
    ),
    size: spent === null ? requests : chartNumber(spent),
    value: spent === null ? requests : <Money of={spent} />,
  }));
  return <Panel title={t('client.home.byModel')}>{shares.length === 0 ? <Quiet /> : <Shares of={shares} />}</Panel>;
}

export function LastErrors({ rows }: { readonly rows: readonly RequestRow[] }) {
  const { t } = useTranslation();
  return (
    <Panel title={t('client.home.lastErrors')}>
      {rows.length === 0 ? (
        <Text fz="sm" c="dimmed">
          {t('client.home.noErrors')}
        </Text>
      ) : (
        <Stack gap={2}>
          {rows.map((row) => (
            <Link key={row.id} to="/usage" search={{ open: row.id }} className="line-link">
              <Group justify="space-between" gap="xs" wrap="nowrap">
                <Group gap="xs" wrap="nowrap" miw={0}>
                  <ResultBadge row={row} />
                  <Text fz="sm" truncate>
                    {row.model ?? row.operation}
                  </Text>
                </Group>
                <Text fz="xs" c="dimmed" component="div" className="nowrap">
                  <Time at={row.receivedAt} relative />
                </Text>
              </Group>
            </Link>
          ))}
        </Stack>
      )}
    </Panel>
  );
}

function Quiet() {
  const { t } = useTranslation();
  return (
    <Text fz="sm" c="dimmed">
      {t('client.home.nothing')}
    </Text>
  );
}
