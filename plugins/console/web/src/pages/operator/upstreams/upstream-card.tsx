/** One vendor: state and why, traffic of the last hour, its keys, and what an operator can do. */
import { Button, Group, SimpleGrid, Stack, Text, Title, Tooltip } from '@mantine/core';
import { IconAlarm, IconPlayerPause, IconPlayerPlay, IconTestPipe } from '@tabler/icons-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { has, useMe } from '../../../api/session.ts';
import { countText, durationText, shareText } from '../../../parts/format.ts';
import { Money } from '../../../parts/money.tsx';
import { Panel } from '../../../parts/page.tsx';
import { useActs } from '../parts/act.tsx';
import { UpstreamWord } from '../parts/badges.tsx';
import { RowLink } from '../parts/names.tsx';
import { canWake, reasonsOf, type UpstreamState } from '../sums/upstream-state.ts';
import type { Upstream } from '../types.ts';
import { KeyPool } from './key-pool.tsx';
import { ModelHealth, Room } from './model-health.tsx';
import { TestDialog } from './test-dialog.tsx';
import { type UpstreamAct, UpstreamDialog } from './upstream-dialog.tsx';

interface CardProps {
  readonly upstream: Upstream;
  readonly state: UpstreamState;
  readonly elapsedMs: number;
}

export function UpstreamCard({ upstream, state, elapsedMs }: CardProps) {
  const { t } = useTranslation();
  const { provider, protocols } = upstream;
  const reasons = state === 'cooling' || state === 'broken' ? reasonsOf(upstream) : [];
  return (
    <Panel>
      <Stack gap="sm" data-testid={`upstream-${provider}`}>
        <Group justify="space-between" wrap="nowrap" align="flex-start">
          <div>
            <Title order={2} fz="md" lh={1.4} className="wrap-any">
              {provider}
            </Title>
            <Group gap={6} mt={2}>
              {Object.entries(protocols).map(([protocol, address]) => (
                <Tooltip key={protocol} label={address}>
                  <Text span fz="xs" c="dimmed" tabIndex={0}>
                    {protocol}
                  </Text>
                </Tooltip>
              ))}
            </Group>
          </div>
          <UpstreamWord state={state} />
        </Group>
        <Text fz="sm" c="dimmed">
          {t(`operator.traffic.upstreams.stateHint.${state}`)}
          {reasons.length > 0 && ` ${t('operator.traffic.upstreams.why', { reason: reasons.join('; ') })}`}
        </Text>
        <Traffic upstream={upstream} />
        {upstream.room !== null && <Room of={upstream.room} />}
        <KeyPool upstream={upstream} elapsedMs={elapsedMs} />
        <ModelHealth upstream={upstream} elapsedMs={elapsedMs} />
        <Actions upstream={upstream} elapsedMs={elapsedMs} />
      </Stack>
    </Panel>
  );
}

function Traffic({ upstream: { provider, lastHour, ownCost } }: { readonly upstream: Upstream }) {
  const { t, i18n } = useTranslation();
  if (lastHour === null || lastHour.requests === 0)
    return (
      <Text fz="xs" c="dimmed">
        {t('operator.traffic.upstreams.noTraffic')}
      </Text>
    );
  const { requests, results, firstByte } = lastHour;
  const rows = { provider, span: '1h' };
  const figures = [
    [t('shell.word.requests'), countText(requests, i18n.language), rows],
    [t('operator.column.success'), shareText(results.ok, requests, i18n.language), { ...rows, result: 'ok' }],
    [
      t('operator.column.errors'),
      countText(results.upstream_error, i18n.language),
      { ...rows, result: 'upstream_error' },
    ],
    [`${t('shell.word.firstByte')} p50`, durationText(firstByte.p50), rows],
    [t('operator.column.ownCost'), <Money key="cost" of={ownCost} />, rows],
  ] as const;
  return (
    <SimpleGrid
      cols={{ base: 2, xs: 5 }}
      spacing={6}
      aria-label={t('operator.traffic.upstreams.lastHour')}
      role="group"
    >
      {figures.map(([label, value, search]) => (
        <div key={label}>
          <Text fz="xs" c="dimmed" truncate title={label}>
            {label}
          </Text>
          <Text fz="sm" fw={600} className="number">
            <RowLink to="/admin/requests" search={search}>
              {value}
            </RowLink>
          </Text>
        </div>
      ))}
    </SimpleGrid>
  );
}

function Actions({ upstream, elapsedMs }: Omit<CardProps, 'state'>) {
  const { t } = useTranslation();
  const [act, setAct] = useState<UpstreamAct>();
  const me = useMe();
  if (!useActs()) return null;
  const { provider, disabled } = upstream;
  const verb = disabled ? 'enable' : 'disable';
  return (
    <Group gap="xs">
      <Button
        size="xs"
        variant="default"
        leftSection={disabled ? <IconPlayerPlay size={14} /> : <IconPlayerPause size={14} />}
        onClick={() => setAct({ verb, provider })}
      >
        {t(`operator.traffic.upstreams.${verb}`)}
      </Button>
      {canWake(upstream, elapsedMs) && (
        <Button
          size="xs"
          variant="default"
          leftSection={<IconAlarm size={14} />}
          onClick={() => setAct({ verb: 'wake', provider })}
        >
          {t('operator.traffic.upstreams.wake')}
        </Button>
      )}
      {has(me, 'tests') && <TestButton upstream={upstream} />}
      <UpstreamDialog act={act} onClose={() => setAct(undefined)} />
    </Group>
  );
}

function TestButton({ upstream }: { readonly upstream: Upstream }) {
  const { t } = useTranslation();
  const [tests, setTests] = useState(false);
  return (
    <>
      <Button size="xs" variant="default" leftSection={<IconTestPipe size={14} />} onClick={() => setTests(true)}>
        {t('operator.traffic.upstreams.test.open')}
      </Button>
      <TestDialog upstream={upstream} opened={tests} onClose={() => setTests(false)} />
    </>
  );
}
