/** Authorizations with what admission rules have reserved for their orders: kept and ended in the same transactions. */

import type { Authorization, AuthorizationEnd, Authorizations } from '../../common/domain/ledger.ts';
import type { Money } from '../../common/domain/money.ts';
import type { Usage } from '../../common/domain/usage.ts';
import type { Admitted, AdmittedOrders } from '../../common/wire/admission-rules.ts';

export function withReservations(offer: Authorization, reserved: Admitted): Authorization {
  return {
    ...offer,
    async place(work) {
      await offer.place(async (orm) => {
        await reserved.keep(orm);
        await work(orm);
      });
      reserved.kept();
    },
  };
}

/** `orders`: undefined where no plugin keeps reservations. */
export function endingReservations(
  authorizations: Authorizations,
  orders: () => AdmittedOrders | undefined,
): Authorizations {
  return {
    onCharge: (listener) => authorizations.onCharge(listener),
    async end(accountId, id, work) {
      const known = orders();
      if (known === undefined) return authorizations.end(accountId, id, work);
      const ended = await authorizations.end(accountId, id, async (orm) => {
        const end = await work(orm);
        return end && noting(end, (cost, usage) => known.end(orm, id, orderEnd(end, cost, usage)));
      });
      if (ended) await known.settle(id);
      return ended;
    },
  };
}

function noting(
  end: AuthorizationEnd,
  note: (cost: Money, usage: Usage | undefined) => Promise<void>,
): AuthorizationEnd {
  return {
    ...end,
    async charged(orm, cost, usage) {
      await end.charged?.(orm, cost, usage);
      await note(cost, usage);
    },
  };
}

function orderEnd({ report, attempts }: AuthorizationEnd, cost: Money, usage: Usage | undefined) {
  const sent = attempts.some(({ result }) => result !== 'not_sent');
  return { outcome: report === undefined ? ('failed' as const) : ('answered' as const), cost, usage, sent };
}
