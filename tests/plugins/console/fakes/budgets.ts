/** Budgets in memory: one of the settings, and those that were set. */
import { GatewayError } from '../../../../core/contract/errors.ts';
import { money, parseUsd } from '../../../../plugins/common/domain/money.ts';
import type {
  BudgetAdmin,
  BudgetAuthority,
  BudgetTerms,
  BudgetView,
} from '../../../../plugins/common/domain/organizations/budgets.ts';
import type { World } from './world.ts';

export function fakeBudgets(world: World): BudgetAdmin {
  const made: (BudgetView & { readonly accountId: string })[] = [];
  const zones = new Map<string, string>();
  const day = 86_400_000;
  const shown = (terms: BudgetTerms, scope: string, ceiling = terms.amount) => ({
    ...{ scope, subject: terms.subject, ceiling, spent: parseUsd('31.25'), from: world.now() - day },
    until: terms.every === 'ever' ? undefined : world.now() + 10 * day,
  });
  const ofSettings: BudgetTerms = { of: 'account', amount: parseUsd('500'), every: 'month', warn: [0.8] };
  const list = (accountId: string): BudgetView[] => [
    { ...ofSettings, changedAt: undefined, states: [shown(ofSettings, 'account:month')] },
    ...made.filter((row) => row.accountId === accountId),
  ];
  const at = (accountId: string, authority: BudgetAuthority, isIt: (row: BudgetView) => boolean) => {
    const index = made.findIndex((row) => row.accountId === accountId && row.authority === authority && isIt(row));
    if (index < 0) throw new GatewayError('not_found', 'There is no such budget.', { field: 'id' });
    return index;
  };
  const countsOf = ({ of, subject, models, tag, by, every }: BudgetTerms) =>
    JSON.stringify([of, subject, models, tag, by, every]);
  return {
    list: async (accountId) => list(accountId),
    set: async (accountId, authority, terms) => {
      const before = made.findIndex(
        (row) => row.accountId === accountId && row.authority === authority && countsOf(row) === countsOf(terms),
      );
      const id = before < 0 ? crypto.randomUUID() : made[before]!.id!;
      const view = { ...terms, id, authority, accountId, changedAt: world.now(), states: [shown(terms, id)] };
      made.splice(before < 0 ? made.length : before, before < 0 ? 0 : 1, view);
      return view;
    },
    add: async (accountId, authority, { scope, amount }) => {
      const index = at(accountId, authority, ({ states }) => states[0]!.scope === scope);
      const row = made[index]!;
      const states = [shown(row, scope, money(row.states[0]!.ceiling + amount))];
      made[index] = { ...row, states };
      return made[index];
    },
    zone: async (accountId) => zones.get(accountId),
    setZone: async (accountId, zone) =>
      void (zone === undefined ? zones.delete(accountId) : zones.set(accountId, zone)),
    warnings: async () => new Map(),
    end: async (accountId, authority, id) =>
      made.splice(
        at(accountId, authority, (row) => row.id === id),
        1,
      )[0]!,
  };
}
