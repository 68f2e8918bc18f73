/** How a vendor's models do in live traffic: their circuits, failures and times; and how full the vendor is. */
import { Button, Group, Text, Tooltip } from '@mantine/core';
import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { Meter } from '../../../parts/bars.tsx';
import { countText, durationText, shareText } from '../../../parts/format.ts';
import { Word } from '../parts/badges.tsx';
import { circuitOf, countdown, worstFirst } from '../sums/upstream-state.ts';
import type { Upstream, UpstreamTarget } from '../types.ts';

const colors = { closed: 'teal', half_open: 'yellow', open: 'red' } as const;
/** A card stays one that can be taken in at a glance. */
const shownAtFirst = 4;

export function ModelHealth({ upstream, elapsedMs }: { readonly upstream: Upstream; readonly elapsedMs: number }) {
  const { t } = useTranslation();
  const [all, setAll] = useState(false);
  const targets = worstFirst(upstream.targets);
  if (targets.length === 0)
    return (
      <Text fz="xs" c="dimmed">
        {t('operator.traffic.upstreams.models.none')}
      </Text>
    );
  const label = t('shell.word.models');
  return (
    <div>
      <Text fz="xs" c="dimmed">
        {label} · {t('operator.traffic.upstreams.models.hint')}
      </Text>
      {(all ? targets : targets.slice(0, shownAtFirst)).map((target) => (
        <OneModel key={target.model} of={target} elapsedMs={elapsedMs} />
      ))}
      {!all && targets.length > shownAtFirst && (
        <Button size="compact-xs" variant="subtle" onClick={() => setAll(true)}>
          {t('operator.traffic.upstreams.models.all', { count: targets.length })}
        </Button>
      )}
    </div>
  );
}

function OneModel({ of: target, elapsedMs }: { readonly of: UpstreamTarget; readonly elapsedMs: number }) {
  const { t } = useTranslation();
  const { model, keys, opensForMs } = target;
  const circuit = circuitOf(target, elapsedMs);
  const meaning = t(`operator.traffic.upstreams.models.meaning.${circuit}`);
  return (
    <div className="key-row">
      <Text span fz="sm" className="mono wrap-any" flex={1} miw={90}>
        {model}
      </Text>
      <Tooltip label={meaning} multiline maw={280}>
        <span>
          <Word color={colors[circuit]}>{t(`operator.traffic.upstreams.models.circuit.${circuit}`)}</Word>
        </span>
      </Tooltip>
      {circuit === 'open' && (
        <Text span fz="xs" className="number">
          {t('operator.traffic.upstreams.models.triesIn', { time: countdown(opensForMs - elapsedMs) })}
        </Text>
      )}
      {circuit !== 'closed' && (
        <Text fz="xs" c="dimmed" w="100%">
          {meaning}
        </Text>
      )}
      <Figures of={target} />
      {keys.map((key) => (
        <OneKey key={key.credential} of={key} />
      ))}
    </div>
  );
}

/** Figures of one key of several; routing chooses keys by them. */
function OneKey({
  of: { credential, answered, firstByteMs, wholeMs },
}: {
  readonly of: UpstreamTarget['keys'][number];
}) {
  const { t, i18n } = useTranslation();
  const parts = [
    t('operator.traffic.upstreams.models.key', { credential, answered: shareText(answered, 1, i18n.language) }),
    firstByteMs !== null && `${t('operator.traffic.upstreams.models.firstByte')} ${durationText(firstByteMs)}`,
    wholeMs !== null && `${t('operator.traffic.upstreams.models.wholeAnswer')} ${durationText(wholeMs)}`,
  ];
  return (
    <Text fz="xs" c="dimmed" w="100%" className="number wrap-any">
      {parts.filter((part) => part !== false).join(' · ')}
    </Text>
  );
}

function Figures({ of: { recent, failed, inFlight, firstByteMs, wholeMs } }: { readonly of: UpstreamTarget }) {
  const { t, i18n } = useTranslation();
  const share = shareText(failed, recent, i18n.language);
  const figures = [
    [
      t('operator.traffic.upstreams.models.failed'),
      recent === 0 ? share : t('operator.traffic.upstreams.models.failedOf', { share, recent }),
      t('operator.traffic.upstreams.models.failedHint', { failed, recent }),
    ],
    [t('operator.traffic.upstreams.models.inFlight'), countText(inFlight, i18n.language)],
    ...(firstByteMs === null && wholeMs !== null
      ? []
      : [[t('operator.traffic.upstreams.models.firstByte'), durationText(firstByteMs)]]),
    ...(wholeMs === null ? [] : [[t('operator.traffic.upstreams.models.wholeAnswer'), durationText(wholeMs)]]),
  ];
  return (
    <Group gap="4px 16px" w="100%">
      {figures.map(([label, value, hint]) => (
        <Text key={label} span fz="xs" className="number" {...(hint === undefined ? {} : { title: hint })}>
          <Text span inherit c="dimmed">
            {label}
          </Text>{' '}
          {value}
        </Text>
      ))}
    </Group>
  );
}

/** How many requests the vendor has and takes at once, and how many wait for it. */
export function Room({ of: { limit, inFlight, queue, waiting } }: { readonly of: NonNullable<Upstream['room']> }) {
  const { t } = useTranslation();
  const label = t('operator.traffic.upstreams.room.title');
  const taken = t('operator.traffic.upstreams.room.taken', { inFlight, limit });
  const isFull = inFlight >= limit;
  const waits =
    waiting === 0
      ? t('operator.traffic.upstreams.room.none')
      : t('operator.traffic.upstreams.room.waiting', { waiting, queue });
  return (
    <div>
      <Group gap="4px 16px" mb={4}>
        <Text span fz="xs" c="dimmed">
          {label}
        </Text>
        <Text span fz="xs" className="number">
          {taken} · {waits}
        </Text>
      </Group>
      <Meter part={inFlight} whole={limit} label={taken} of="limit" />
      {isFull && waiting >= queue && (
        <Text fz="xs" mt={4}>
          {t('operator.traffic.upstreams.room.full')}
        </Text>
      )}
    </div>
  );
}
