/** Faults of credit lines: in what they bring, and in what is paid of them. */
import { creditKind } from '../../plugins/billing/grants/credit-rows.ts';
import { money } from '../../plugins/common/domain/money.ts';
import type { Mutant } from './mutants.ts';
import { inside, redefine } from './mutants-tools.ts';

export const creditMutants: Readonly<Record<string, Mutant>> = {
  'line-again': {
    summary: 'a credit line brings its month’s money again whenever somebody looks',
    store: inside((entries) => {
      const { credit } = entries.tables;
      const grants: typeof credit.grants = async (since) =>
        (await credit.grants(since)).filter(({ expiresAt }) => expiresAt <= entries.at);
      redefine(entries.tables, 'credit', { value: { ...credit, grants } });
      const give = entries.credit.bind(entries);
      entries.credit = async (amount, grant) => {
        const again = grant.kind === creditKind && (await entries.knowsGrant(grant.reference));
        return give(amount, again ? { ...grant, reference: `${grant.reference}0${entries.at}` } : grant);
      };
    }),
  },
  'line-paid-again': {
    summary: 'what was paid of a credit line before is not counted',
    store: inside(({ tables }) => {
      const { credit } = tables;
      const grants: typeof credit.grants = async (since) =>
        (await credit.grants(since)).map((grant) => ({ ...grant, paid: money(0n) }));
      redefine(tables, 'credit', { value: { ...credit, grants } });
    }),
  },
  'line-unpaid': {
    summary: 'a payment leaves what is due of a credit line',
    store: inside((entries) => {
      const post = entries.post.bind(entries);
      entries.post = async (row) =>
        row.kind === 'PAYOUT' && row.reference?.includes(':paid:') === true ? '0' : post(row);
    }),
  },
  'month-in-wrong-zone': {
    summary: 'months of credit lines begin at midnight in UTC, whatever zone they are said to be of',
    billing: (section) => ({ ...section, ...(section.statements && { statements: { zone: 'UTC' } }) }),
  },
};
