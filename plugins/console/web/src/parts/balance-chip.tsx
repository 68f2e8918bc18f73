/** The balance in the header; it opens the wallet and follows the spend. */
import { Text } from '@mantine/core';
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import { useTranslation } from 'react-i18next';
import { get } from '../api/client.ts';
import { useLiveInterval, useLiveRefresh } from '../api/live.ts';
import type { Usd } from '../api/types.ts';
import { Money } from './money.tsx';

export const walletKey = ['wallet'] as const;

export function BalanceChip() {
  const { t } = useTranslation();
  useLiveRefresh('balance', walletKey);
  const wallet = useQuery({
    queryKey: walletKey,
    queryFn: () => get<{ readonly balance: Usd }>('/wallet'),
    refetchInterval: useLiveInterval(10_000),
  });
  return (
    <Link to="/wallet" className="balance-chip">
      <Text span fz="xs" c="dimmed" visibleFrom="sm">
        {t('shell.balance')}
      </Text>
      <Text span fz="sm" fw={600}>
        <Money of={wallet.data?.balance} />
      </Text>
    </Link>
  );
}
