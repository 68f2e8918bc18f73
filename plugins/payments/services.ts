/** Types: the services that settling a payment uses. */

import type { Clock, Log } from '../../core/contract/host-tools.ts';
import type { Accounts } from '../common/domain/accounts.ts';
import type { Ledger, Pool } from '../common/domain/ledger.ts';
import type { Processor } from './processor.ts';
import type { OrderRows } from './rows.ts';
import type { WithdrawalRows } from './withdrawal-rows.ts';

export interface SettlementServices {
  readonly rows: OrderRows;
  readonly withdrawals: WithdrawalRows;
  readonly processor: Processor;
  readonly ledger: Ledger;
  readonly pool: Pool;
  readonly clock: Clock;
  readonly log: Log;
  readonly currency: string;
  /** Undefined: the gateway has no accounts of its own. */
  readonly accounts: () => Accounts | undefined;
}
