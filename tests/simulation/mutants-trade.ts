/** Faults in what is sold, redeemed, debited and paid back. */
import { money } from '../../plugins/common/domain/money.ts';
import type { Mutant } from './mutants.ts';
import { inside, redefine } from './mutants-tools.ts';

export const tradeMutants: Readonly<Record<string, Mutant>> = {
  'code-once-more': {
    summary: 'a code is used up only after one use too many',
    tables: (tables) => {
      const read = tables.read.bind(tables);
      tables.read = (hash) => {
        const code = read(hash);
        return code && { ...code, maxUses: code.maxUses + 1 };
      };
    },
  },
  'code-again-by-one': {
    summary: 'an account redeems a code again that each account may redeem once',
    tables: (tables) => {
      tables.isUsedBy = () => false;
    },
  },
  'code-use-of-its-own': {
    summary: 'a code’s use is committed by itself, also where the gift is refused',
    tables: (tables) => {
      const add = tables.addUse.bind(tables);
      tables.addUse = (_transaction, use) => {
        const alone = { undo: [], commits: [] as (() => void)[] };
        add(alone, use);
        for (const report of alone.commits) report();
      };
    },
  },
  'code-revoked-late': {
    summary: 'a code that was revoked can be redeemed on',
    tables: (tables) => {
      const read = tables.read.bind(tables);
      tables.read = (hash) => {
        const code = read(hash);
        return code && { ...code, revokedAt: undefined };
      };
    },
  },
  'purchase-twice': {
    summary: 'a purchase that is reported twice is made twice',
    store: inside((entries) => {
      const purchase = entries.purchase.bind(entries);
      let again = 0;
      entries.purchase = async (price, entry) =>
        (await purchase(price, entry)) ||
        purchase(price, { ...entry, reference: `${entry.reference} again ${++again}` });
    }),
  },
  'plan-without-pay': {
    summary: 'a plan begins although the balance did not cover its price',
    store: inside((entries) => {
      const purchase = entries.purchase.bind(entries);
      entries.purchase = (price, entry) => purchase(price, entry).catch(() => true);
    }),
  },
  'grant-again': {
    summary: 'a plan’s money is given again whenever somebody looks',
    store: inside((entries) => {
      const credit = entries.credit.bind(entries);
      entries.credit = async (amount, grant) => {
        const again = grant.reference.startsWith('term:') && (await entries.knowsGrant(grant.reference));
        return credit(amount, again ? { ...grant, reference: `${grant.reference} ${entries.at}` } : grant);
      };
    }),
  },
  'expiry-when-seen': {
    summary: 'what is left of a grant expires when somebody looks, not at its end',
    store: inside((entries) => {
      const post = entries.post.bind(entries);
      entries.post = (row) => post(row.kind === 'EXPIRE' ? { ...row, at: entries.at } : row);
    }),
  },
  'debit-of-the-leased': {
    summary: 'a debit takes what nodes have leased and may be spending',
    store: inside((entries) => redefine(entries, 'leased', { value: money(0n) })),
  },
  'debit-beside-calls': {
    summary: 'a debit takes what this process’s calls have set aside in memory',
    store: inside((entries) => redefine(entries, 'mayTake', { get: () => true, set: () => {} })),
  },
  'plan-untold': {
    summary: 'a plan is bought, and now and then the account is not put on it',
    tables: (tables) => {
      const setPlan = tables.setPlan.bind(tables);
      let count = 0;
      tables.setPlan = (...given) => {
        count += 1;
        if (count % 5 !== 0) setPlan(...given);
      };
    },
  },
  'refund-beyond': {
    summary: 'each refund of a request is held against its whole charge',
    store: inside(({ tables }) => {
      const { refunds } = tables;
      const chargeOf: typeof refunds.chargeOf = async (requestId) => {
        const charge = await refunds.chargeOf(requestId);
        return charge && { ...charge, refunded: 0n };
      };
      redefine(tables, 'refunds', { value: { ...refunds, chargeOf } });
    }),
  },
  'payout-again': {
    summary: 'what was paid back of a top-up before is not counted',
    store: inside(({ tables }) => {
      const lasting = tables.nonExpiring.bind(tables);
      tables.nonExpiring = async () => (await lasting()).map((grant) => ({ ...grant, paid_out: '0' }));
    }),
  },
};
