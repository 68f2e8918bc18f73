/** The keys of a vendor: which can be used, which rest and for how long, and why. */
import { ActionIcon, Group, Text, Tooltip } from '@mantine/core';
import { IconPlayerPause, IconPlayerPlay } from '@tabler/icons-react';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useActs } from '../parts/act.tsx';
import { Word } from '../parts/badges.tsx';
import { countdown, keyState } from '../sums/upstream-state.ts';
import type { Upstream } from '../types.ts';
import { type UpstreamAct, UpstreamDialog } from './upstream-dialog.tsx';

const colors = { ready: 'teal', resting: 'yellow', partly: 'yellow', disabled: 'gray' } as const;

export function KeyPool({ upstream, elapsedMs }: { readonly upstream: Upstream; readonly elapsedMs: number }) {
  const { t } = useTranslation();
  const [act, setAct] = useState<UpstreamAct>();
  const { keys, provider } = upstream;
  const usable = keys.filter((key) => ['ready', 'partly'].includes(keyState(key, elapsedMs))).length;
  return (
    <div>
      <Text fz="xs" c="dimmed">
        {t('operator.traffic.upstreams.keysUsable', { usable, count: keys.length })}
      </Text>
      {keys.map((key) => (
        <OneKey
          key={key.credential}
          of={key}
          elapsedMs={elapsedMs}
          onAct={(verb) => setAct({ verb, provider, credential: key.credential })}
        />
      ))}
      <UpstreamDialog act={act} onClose={() => setAct(undefined)} />
    </div>
  );
}

interface OneKeyProps {
  readonly of: Upstream['keys'][number];
  readonly elapsedMs: number;
  readonly onAct: (verb: 'enable' | 'disable') => void;
}

function OneKey({ of: key, elapsedMs, onAct }: OneKeyProps) {
  const { t } = useTranslation();
  const acts = useActs();
  const state = keyState(key, elapsedMs);
  const rests = key.modelRests.filter(({ restsMs }) => restsMs > elapsedMs);
  const verb = key.disabled ? 'enable' : 'disable';
  const label = `${t(`operator.traffic.upstreams.${verb}`)}: ${key.credential}`;
  return (
    <div className="key-row">
      <Text span fz="sm" className="mono wrap-any" flex={1} miw={90}>
        {key.credential}
      </Text>
      <Word color={colors[state]}>{t(`operator.traffic.upstreams.keyState.${state}`)}</Word>
      {state === 'resting' && (
        <Text span fz="xs" className="number">
          {t('operator.traffic.upstreams.wakesIn', { time: countdown(key.restsMs - elapsedMs) })}
        </Text>
      )}
      {acts && (
        <Tooltip label={label}>
          <ActionIcon size="sm" variant="subtle" color="gray" aria-label={label} onClick={() => onAct(verb)}>
            {key.disabled ? <IconPlayerPlay size={14} /> : <IconPlayerPause size={14} />}
          </ActionIcon>
        </Tooltip>
      )}
      {rests.length > 0 && (
        <Group gap={6} w="100%">
          {rests.map(({ model, restsMs }) => (
            <Text key={model} span fz="xs" c="dimmed" className="number">
              {t('operator.traffic.upstreams.restsFor', { model, time: countdown(restsMs - elapsedMs) })}
            </Text>
          ))}
        </Group>
      )}
      {state !== 'ready' && key.reason !== null && (
        <Text fz="xs" c="dimmed" w="100%" className="wrap-any">
          {key.reason}
        </Text>
      )}
    </div>
  );
}
