/** Rules of other plugins that reserve something for a call before it is made, together with its money: all or none. */
import {
  definePlugin,
  type Exchange,
  type Host,
  type Outcome,
  type PluginInstance,
} from '../../core/contract/contract.ts';
import { duration, z } from '../../core/contract/schema.ts';
import { caller } from '../common/domain/accounts.ts';
import { attempts, call, ruled, spendGuard, usageReport, vendorBatch } from '../common/domain/calls.ts';
import { database } from '../common/domain/database.ts';
import { funds } from '../common/domain/ledger.ts';
import { instead, model } from '../common/domain/models.ts';
import { zero } from '../common/domain/money.ts';
import { plan } from '../common/domain/plans.ts';
import { priceRatio } from '../common/domain/price-ratio.ts';
import {
  type AdmissionEnd,
  type Admitted,
  type AdmittedCall,
  admission,
  admitted,
  admittedOrders,
  type CallToAdmit,
} from '../common/wire/admission-rules.ts';
import { OrderRows } from './orders.ts';
import { Rules } from './rules.ts';
import { Orders } from './settling.ts';

const sweepMs = 15_000;

const config = z.strictObject({
  within: duration()
    .prefault('2s')
    .describe('How long a rule may take to reserve or to settle; then it has failed, and is not waited for.'),
  broken: z
    .enum(['refuse', 'allow'])
    .default('refuse')
    .describe('What becomes of a call where a rule fails to reserve: refused with 503, or made without this rule.'),
});

type Settings = z.output<typeof config>;

export default definePlugin<Settings>({
  name: 'admission',
  config,
  extensionPoints: [admission],
  services: { optional: [database, funds], provides: [admittedOrders] },
  requires: [call, caller, model],
  optional: [plan, priceRatio, instead, ruled],
  sets: [admitted],
  requiresAtEnd: [attempts, usageReport],
  async setup(host, settings) {
    const store = host.find(database);
    await store?.migrate('admission', new URL('./migrations/', import.meta.url));
    return setUpAdmission(host, settings, store && new OrderRows(store));
  },
});

/** Sets the plugin up with the given table; undefined: nothing outlives its exchange. */
export function setUpAdmission(
  host: Host,
  settings: Settings,
  rows: ConstructorParameters<typeof Orders>[1] | undefined,
): PluginInstance<Settings> {
  let current = settings;
  const rules = new Rules(() => current);
  const orders = rows && new Orders(host, rows, rules);
  if (orders !== undefined) host.provide(admittedOrders, orders);
  return {
    applies: (endpoint) =>
      (endpoint.handle === undefined || endpoint.deferred === true) &&
      endpoint.setsOnOpen?.includes(call) === true &&
      host.extensions(admission).length > 0,
    handle(exchange, next) {
      if (!exchange.get(call).billable || isAdmittedBefore(exchange)) return next();
      return reserve(host, exchange, rules, orders).then(() => next());
    },
    reload: {
      prepare: (changed) => () => {
        current = changed;
      },
    },
    lifecycle: {
      start() {
        if (orders !== undefined && host.extensions(admission).length > 0)
          host.every(sweepMs, 'settle reservations of orders', () => orders.sweep());
      },
    },
  };
}

/** A line of a vendor's batch was admitted when it was ordered; an estimate makes no call. */
function isAdmittedBefore(exchange: Exchange): boolean {
  const stage = exchange.find(vendorBatch);
  return stage === 'answer' || stage === 'estimate';
}

async function reserve(host: Host, exchange: Exchange, rules: Rules, orders: Orders | undefined): Promise<void> {
  const { id, endpoint, log } = exchange;
  const { accountId, keyId, project } = exchange.get(caller);
  const asked: AdmittedCall = {
    id,
    at: host.clock.now(),
    caller: { accountId, keyId, ...(project === undefined ? {} : { project }) },
    operation: endpoint.operation,
    model: exchange.get(model).id,
    amount: host.find(funds)?.amountOf(exchange) ?? zero,
  };
  const toAdmit: CallToAdmit = { ...asked, find: (key) => exchange.find(key) };
  const held = await rules.reserve(host.extensions(admission), toAdmit, log);
  if (held.length === 0) return;
  let isSent = false;
  let order: 'none' | 'placing' | 'placed' = 'none';
  exchange.beforeFirstByte(() => {
    isSent = true;
  });
  exchange.set(admitted, {
    keep(orm) {
      order = 'placing';
      return orders!.keep(orm, asked, held);
    },
    kept() {
      order = 'placed';
    },
  } satisfies Admitted);
  exchange.defer((outcome) => {
    if (order === 'placed') return undefined;
    if (order === 'placing') return orders!.release(asked, held);
    return rules.end(held, ...endOf(exchange, asked, isSent, outcome), log);
  });
}

/** The call with the model that served it, and its end; undefined: it has reached no vendor. */
function endOf(
  exchange: Exchange,
  asked: AdmittedCall,
  isSent: boolean,
  outcome: Outcome,
): [AdmittedCall, AdmissionEnd | undefined] {
  const charged = exchange.find(spendGuard)?.charged?.();
  const wasSent = isSent && exchange.find(attempts)?.some(({ result }) => result !== 'not_sent') === true;
  if (charged === undefined && !wasSent) return [asked, undefined];
  const end = {
    outcome: outcomeOf(outcome),
    cost: charged?.cost ?? zero,
    usage: charged === undefined ? exchange.find(usageReport)?.usage : charged.usage,
  };
  return [{ ...asked, model: exchange.get(model).id }, end];
}

function outcomeOf({ kind, error, status }: Outcome): AdmissionEnd['outcome'] {
  if (kind === 'client_left') return 'client_left';
  return kind === 'complete' && error === undefined && status < 400 ? 'answered' : 'failed';
}
