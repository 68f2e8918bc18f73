/** After money has moved: everything that shows money is asked again. */
import { useQueryClient } from '@tanstack/react-query';
import { askAgain } from '../../api/again.ts';
import { meQuery } from '../../api/session.ts';
import { walletKey } from '../../parts/balance-chip.tsx';
import { listKey } from '../../parts/data-table.tsx';

export function useMoneyChanged(): () => Promise<unknown> {
  const queries = useQueryClient();
  const keys = [walletKey, ['home'], meQuery.queryKey, listKey('/wallet/ledger'), ['payments'], ['models']];
  return () => Promise.all(keys.map((queryKey) => askAgain(queries, queryKey)));
}
