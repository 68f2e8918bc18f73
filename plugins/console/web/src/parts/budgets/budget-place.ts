/** Where budgets are shown: of which account, and what the person may change. */
import { notifications } from '@mantine/notifications';
import { useQueryClient } from '@tanstack/react-query';
import { askAgain } from '../../api/again.ts';

export interface BudgetPlace {
  /** Below which the API has them: empty for the signed-in person's account. */
  readonly base: string;
  /** By whom budgets are set here; undefined: they are only read. */
  readonly authority: 'owner' | 'operator' | undefined;
}

export const budgetsKey = ({ base }: BudgetPlace) => ['budgets', base];

/** Shows the message once the list is asked for again. */
export function useBudgetsChanged(place: BudgetPlace) {
  const queries = useQueryClient();
  return async (message: string) => {
    await askAgain(queries, budgetsKey(place));
    notifications.show({ message, color: 'teal' });
  };
}
