/** One vendor: state and why, its keys and models, and what an operator can do. */
import { Button, Group, Stack, Text } from '@mantine/core';
import { IconAlarm, IconPlayerPause, IconPlayerPlay, IconTestPipe } from '@tabler/icons-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { has, useMe } from '../../../api/session.ts';
import { useActs } from '../parts/act.tsx';
import { UpstreamWord } from '../parts/badges.tsx';
import { RowLink } from '../parts/names.tsx';
import { canWake, reasonsOf, type UpstreamState } from '../sums/upstream-state.ts';
import type { Upstream } from '../types.ts';
import { KeyPool } from './key-pool.tsx';
import { ModelHealth, Room } from './model-health.tsx';
import { TestDialog } from './test-dialog.tsx';
import { type UpstreamAct, UpstreamDialog } from './upstream-dialog.tsx';

interface DetailsProps {
  readonly upstream: Upstream;
  readonly state: UpstreamState;
  readonly elapsedMs: number;
}

export function UpstreamDetails({ upstream, state, elapsedMs }: DetailsProps) {
  const { t } = useTranslation();
  const { provider, protocols } = upstream;
  const reasons = state === 'cooling' || state === 'broken' ? reasonsOf(upstream) : [];
  return (
    <Stack gap="sm" data-testid={`upstream-${provider}`}>
      <Group justify="space-between">
        <UpstreamWord state={state} />
        <RowLink to="/admin/requests" search={{ provider, span: '1h' }}>
          {t('operator.traffic.upstreams.requests')}
        </RowLink>
      </Group>
      <Text fz="sm" c="dimmed">
        {t(`operator.traffic.upstreams.stateHint.${state}`)}
        {reasons.length > 0 && ` ${t('operator.traffic.upstreams.why', { reason: reasons.join('; ') })}`}
      </Text>
      <Actions upstream={upstream} elapsedMs={elapsedMs} />
      {upstream.room !== null && <Room of={upstream.room} />}
      <KeyPool upstream={upstream} elapsedMs={elapsedMs} />
      <ModelHealth upstream={upstream} elapsedMs={elapsedMs} />
      <Protocols of={protocols} />
    </Stack>
  );
}

/** Each with its address. */
function Protocols({ of }: { readonly of: Upstream['protocols'] }) {
  return (
    <div>
      {Object.entries(of).map(([protocol, address]) => (
        <div key={protocol} className="key-row">
          <Text span fz="xs">
            {protocol}
          </Text>
          <Text span fz="xs" c="dimmed" className="mono wrap-any">
            {address}
          </Text>
        </div>
      ))}
    </div>
  );
}

function Actions({ upstream, elapsedMs }: Omit<DetailsProps, 'state'>) {
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
