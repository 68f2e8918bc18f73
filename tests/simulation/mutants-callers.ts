/** Faults in how API keys are looked up, remembered, and counted. */
import { money } from '../../plugins/common/domain/money.ts';
import type { Mutant } from './mutants.ts';

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
  'share-returned-and-spent': {
    summary: 'a share is returned although calls that run here need it',
    ledger: ({ budgets }) => {
      const take = budgets.take.bind(budgets);
      budgets.take = (node, round) =>
        take(node, { ...round, requests: round.requests.map((request) => ({ ...request, pending: money(0n) })) });
    },
  },
};
