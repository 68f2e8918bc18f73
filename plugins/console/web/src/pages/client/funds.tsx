/** The parts of a balance: windows as bars with a countdown, grants with their rest. */

import { Badge, Group, Stack, Text } from '@mantine/core';
import { useEffect, useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { Grant, Moment, Pool, SpendWindow } from '../../api/types.ts';
import { Meter } from '../../parts/bars.tsx';
import { chartNumber, countdownText, moneyText } from '../../parts/format.ts';
import { useGrantKind } from '../../parts/known-words.ts';
import { Money } from '../../parts/money.tsx';
import { Time } from '../../parts/time.tsx';

export function Windows({ of }: { readonly of: Pool['windows'] }) {
  return (
    <Stack gap="md">
      {of.map((window) => (
        <OneWindow key={window.name} window={window} />
      ))}
    </Stack>
  );
}

function OneWindow({ window }: { readonly window: SpendWindow }) {
  const { t, i18n } = useTranslation();
  const spent = moneyText(window.spent, i18n.language);
  const limit = moneyText(window.limit, i18n.language);
  return (
    <div>
      <Group justify="space-between" gap="xs" mb={4}>
        <Text fz="sm" fw={550}>
          {t(`client.wallet.window.${window.name}`)}
        </Text>
        <Text fz="sm" component="div">
          <Money of={window.spent} />{' '}
          <Text span c="dimmed" inherit>
            {`/ ${limit}`}
          </Text>
        </Text>
      </Group>
      <Meter
        part={chartNumber(window.spent)}
        whole={chartNumber(window.limit)}
        label={t('client.wallet.windowWords', { spent, limit })}
        of="limit"
      />
      <Text fz="xs" c="dimmed" mt={4}>
        {t('client.wallet.resets')} <Countdown to={window.endsAt} />
      </Text>
    </div>
  );
}

export function Grants({ of }: { readonly of: readonly Grant[] }) {
  return (
    <Stack gap="sm">
      {of.map((grant) => (
        <OneGrant key={grant.id} grant={grant} />
      ))}
    </Stack>
  );
}

function OneGrant({ grant }: { readonly grant: Grant }) {
  const { t, i18n } = useTranslation();
  const kindText = useGrantKind();
  const words = {
    remaining: moneyText(grant.remaining, i18n.language),
    amount: moneyText(grant.amount, i18n.language),
  };
  return (
    <div>
      <Group justify="space-between" gap="xs" mb={4} wrap="nowrap">
        <Group gap={8} wrap="nowrap" miw={0}>
          <Badge size="sm" variant="light" radius="sm" className="nowrap">
            {kindText(grant.kind)}
          </Badge>
          <Text fz="sm" truncate title={grant.reason}>
            {grant.reason}
          </Text>
        </Group>
        <Text fz="sm" component="div" className="nowrap">
          <Money of={grant.remaining} />{' '}
          <Text span c="dimmed" inherit>
            {`/ ${words.amount}`}
          </Text>
        </Text>
      </Group>
      <Meter
        part={chartNumber(grant.remaining)}
        whole={chartNumber(grant.amount)}
        label={t('client.wallet.grantWords', words)}
      />
      <Text fz="xs" c="dimmed" mt={4} component="div">
        {grant.expiresAt === null ? (
          t('client.wallet.lasts')
        ) : (
          <>
            {t('client.wallet.lapses')} <Time at={grant.expiresAt} relative />
          </>
        )}
      </Text>
    </div>
  );
}

/** How long it is until a moment, counted down while one looks. */
function Countdown({ to }: { readonly to: Moment }) {
  const { i18n } = useTranslation();
  const end = new Date(to).getTime();
  const [now, setNow] = useState(() => Date.now());
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return <span className="number">{countdownText(end - now, i18n.language)}</span>;
}
