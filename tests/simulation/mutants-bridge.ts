/** Faults in what is kept of accounts for an outage, and in what the dead have leased. */
import type { Leased, LeaseRequest, Leases } from '../../plugins/billing/leases/store.ts';
import type { Store } from '../../plugins/billing/store.ts';
import { money } from '../../plugins/common/domain/money.ts';
import type { Mutant } from './mutants.ts';
import { opened } from './mutants-tools.ts';

/** Asks for the small share of an idle account. */
const rests = ({ need, smallest, leaving }: LeaseRequest) => need === 0n && smallest > 0n && !leaving;

/** As if so much more had been leased. */
function more(answer: Leased, by: bigint): Leased {
  return { ...answer, amount: money(answer.amount + by), allowed: money(answer.allowed + by) };
}

/** Changes what a process reads in the answers to its requests. */
function answering(change: (request: LeaseRequest, answer: Leased) => Leased): (store: Store) => Store {
  return (store) => {
    const take: Leases['take'] = async (node, round) => {
      const answers = await store.leases.take(node, round);
      for (const request of round.requests)
        answers.set(request.accountId, change(request, answers.get(request.accountId)!));
      return answers;
    };
    return { ...opened(store), leases: { ...store.leases, take } };
  };
}

export const bridgeMutants: Readonly<Record<string, Mutant>> = {
  'bridge-overspends': {
    summary: 'of an idle account twice as much is spent in an outage as is leased',
    link: answering((request, answer) => (rests(request) ? more(answer, answer.amount) : answer)),
  },
  'bridge-after-recall': {
    summary: 'what is kept for an outage is spent after another process has recalled it',
    link: (store) => {
      const kept = new Map<string, bigint>();
      return answering((request, answer) => {
        const { accountId, pending, leaving } = request;
        const before = kept.get(accountId) ?? 0n;
        if (rests(request)) kept.set(accountId, answer.amount - pending);
        if (!leaving) return answer;
        kept.delete(accountId);
        return more(answer, before);
      })(store);
    },
  },
  'dead-lease-forgotten': {
    summary: 'what a process that died had leased is not returned when its journal has been read',
    link: (store) => ({ ...opened(store), leases: { ...store.leases, returnAll: async () => {} } }),
  },
};
