/** Faults in how API keys are looked up, remembered, and counted. */
import { budgetsTopic } from '../../plugins/billing/budgets/rows.ts';
import type { ShareRequest } from '../../plugins/billing/budgets/shares.ts';
import { money } from '../../plugins/common/domain/money.ts';
import type { Mutant } from './mutants.ts';

const inUtc = <Budget extends object>(budget: Budget): Budget => ({ ...budget, zone: 'UTC' });

/** What is charged is read of no one, where it is counted by this. */
function uncounted(name: 'tag' | 'person'): NonNullable<Mutant['ledger']> {
  return ({ budgets }) => {
    const take = budgets.take.bind(budgets);
    const read = budgets.read.bind(budgets);
    const without = (requests: readonly ShareRequest[]) =>
      requests.map((request) => {
        const { counted } = request;
        if (counted?.spending[name] === undefined) return request;
        return { ...request, counted: { ...counted, spending: { ...counted.spending, [name]: 'no one' } } };
      });
    budgets.take = (node, round) => take(node, { ...round, requests: without(round.requests) });
    budgets.read = (requests) => read(without(requests));
  };
}

export const callerMutants: Readonly<Record<string, Mutant>> = {
  'revocation-untold': {
    summary: 'an API key is changed or revoked, and no process is notified',
    announces: (topic) => topic !== 'key',
  },
  'revocation-unheard': {
    summary: 'what is known of an API key stays in memory although a change of it was announced',
    hears: (topic) => topic !== 'key',
  },
  'end-of-key-forgotten': {
    summary: 'an API key that is known goes on past its end',
    callers: ({ store, admin }) => ({
      admin: admin,
      store: {
        ...store,
        findValidKey: async (hash) => {
          const found = await store.findValidKey(hash);
          return found && { ...found, expiresAt: null };
        },
      },
    }),
  },
  'spend-of-others-ignored': {
    summary: 'what an API key has spent at other processes does not count against its cap',
    ledger: ({ budgets }) => {
      const stateOf = budgets.stateOf.bind(budgets);
      budgets.stateOf = (node, request) => ({ ...stateOf(node, request), others: 0n });
    },
  },
  'tags-uncounted': {
    summary: 'what calls with a tag have spent does not count against a budget of it, once it is in the database',
    ledger: uncounted('tag'),
  },
  'person-uncounted': {
    summary: 'what somebody has spent does not count against their budget, once it is in the database',
    ledger: uncounted('person'),
  },
  'ceiling-change-ignored': {
    summary: 'a changed budget is announced, and processes go on by the ceiling that they know',
    hears: (topic) => topic !== budgetsTopic,
  },
  'period-in-wrong-zone': {
    summary: 'periods of budgets begin at midnight in UTC, whatever their zone',
    billing: (section) => ({ ...section, budgets: section.budgets.map(inUtc) }),
    ledger: ({ ownBudgets }) => {
      const read = ownBudgets.read.bind(ownBudgets);
      ownBudgets.read = async (accountId) => {
        const own = await read(accountId);
        return { ...own, rules: own.rules.map(inUtc) };
      };
    },
  },
  'share-returned-and-spent': {
    summary: 'a share is returned although calls that run here need it',
    ledger: ({ budgets }) => {
      const take = budgets.take.bind(budgets);
      budgets.take = (node, round) =>
        take(node, { ...round, requests: round.requests.map((request) => ({ ...request, pending: money(0n) })) });
    },
  },
};
