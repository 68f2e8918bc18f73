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
import { ledgerQueries } from '../common/domain/admin/ledger.ts';
import { attempts, call, ruled, spendGuard, usageReport, vendorBatch } from '../common/domain/calls.ts';
import { database } from '../common/domain/database.ts';
import { funds, ledger } from '../common/domain/ledger.ts';
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
import { type Held, Rules } from './rules.ts';
import { Orders } from './settling.ts';

const sweepMs = 15_000;

const config = z.strictObject({
  within: duration()
    .prefault('2s')
    .describe(
      'How long a rule may take to reserve or to settle; then it has failed, and is not waited for. Raise it for rules that ask a slow service.',
    ),
  broken: z
    .enum(['refuse', 'allow'])
    .default('refuse')
    .describe(
      'What becomes of a call where a rule fails to reserve: refused with 503, or made without this rule. Use allow when answering matters more than the rule.',
    ),
});

type Settings = z.output<typeof config>;

export default definePlugin<Settings>({
  name: 'admission',
  config,
  extensionPoints: [admission],
  services: { optional: [database, funds, ledger, ledgerQueries], provides: [admittedOrders] },
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
  const settling = new Settling();
  return {
    applies: (endpoint) =>
      (endpoint.handle === undefined || endpoint.deferred === true) &&
      endpoint.setsOnOpen?.includes(call) === true &&
      host.extensions(admission).length > 0,
    handle(exchange, next) {
      if (!exchange.get(call).billable || isAdmittedBefore(exchange)) return next();
      return reserve(host, exchange, { rules, orders, settling }).then(() => next());
    },
    reload: {
      prepare: (changed) => () => {
        current = changed;
      },
    },
    lifecycle: {
      async start() {
        if (orders === undefined || host.extensions(admission).length === 0) return;
        await orders.start();
        host.every(sweepMs, 'settle reservations of orders', () => orders.sweep());
      },
      stop: () => settling.end(),
    },
  };
}

/** A line of a vendor's batch was admitted when it was ordered; an estimate makes no call. */
function isAdmittedBefore(exchange: Exchange): boolean {
  const stage = exchange.find(vendorBatch);
  return stage === 'answer' || stage === 'estimate';
}

interface Parts {
  readonly rules: Rules;
  readonly orders: Orders | undefined;
  readonly settling: Settling;
}

async function reserve(host: Host, exchange: Exchange, parts: Parts): Promise<void> {
  const { rules, orders } = parts;
  const { id, endpoint, log } = exchange;
  const { accountId, keyId, project, tags } = exchange.get(caller);
  const requested: AdmittedCall = {
    id,
    at: host.clock.now(),
    caller: {
      ...{ accountId, keyId },
      ...(project === undefined ? {} : { project }),
      ...(tags === undefined ? {} : { tags: Object.fromEntries(tags) }),
    },
    operation: endpoint.operation,
    model: exchange.get(model).id,
    amount: host.find(funds)?.amountOf(exchange) ?? zero,
  };
  const toAdmit: CallToAdmit = { ...requested, find: (key) => exchange.find(key) };
  const held = await rules.reserve(host.extensions(admission), toAdmit, log);
  if (held.length === 0) return;
  const noted = orders === undefined ? [] : held.filter(({ rule }) => rule.durable === true);
  if (noted.length > 0) {
    await orders!.note(requested, noted).catch(async (error: unknown) => {
      await rules.end(held, requested, undefined, log);
      throw error;
    });
  }
  settleAtEnd(exchange, requested, { held, noted }, parts);
}

interface Reserved {
  readonly held: readonly Held[];
  /** Those of them that are in the database, too. */
  readonly noted: readonly Held[];
}

function settleAtEnd(
  exchange: Exchange,
  requested: AdmittedCall,
  { held, noted }: Reserved,
  { rules, orders, settling }: Parts,
): void {
  let isSent = false;
  let order: 'none' | 'placing' | 'placed' = 'none';
  exchange.beforeFirstByte(() => {
    isSent = true;
  });
  exchange.set(admitted, {
    keep(orm) {
      order = 'placing';
      return orders!.keep(orm, requested, held);
    },
    kept() {
      order = 'placed';
    },
  } satisfies Admitted);
  const end = async (outcome: Outcome): Promise<void> => {
    if (order === 'placed') return;
    if (order === 'placing') return orders!.release(requested, held);
    const [served, ended] = endOf(exchange, requested, isSent, outcome);
    const unnoted = noted.length === 0 ? held : held.filter((one) => !noted.includes(one));
    await rules.end(unnoted, served, ended, exchange.log);
    if (noted.length === 0) return;
    await orders!.endNoted(requested, { ...(ended ?? unsent), sent: ended !== undefined, model: served.model });
  };
  // Slots and rows of the call do not wait for it.
  exchange.defer((outcome) => settling.add(end(outcome), exchange.log));
}

/** Settlements that run, which the gateway waits for when it stops. */
class Settling {
  readonly #running = new Set<Promise<void>>();

  add(settlement: Promise<void>, log: Exchange['log']): void {
    const logged = settlement
      .catch((error: unknown) => log.warn({ error }, 'reservations of a call are settled later'))
      .finally(() => void this.#running.delete(logged));
    this.#running.add(logged);
  }

  async end(): Promise<void> {
    await Promise.all(this.#running);
  }
}

const unsent: AdmissionEnd = { outcome: 'failed', cost: zero, usage: undefined };

/** The call with the model that served it, and its end; undefined: it has reached no vendor. */
function endOf(
  exchange: Exchange,
  requested: AdmittedCall,
  isSent: boolean,
  outcome: Outcome,
): [AdmittedCall, AdmissionEnd | undefined] {
  const charged = exchange.find(spendGuard)?.charged?.();
  const wasSent = isSent && exchange.find(attempts)?.some(({ result }) => result !== 'not_sent') === true;
  if (charged === undefined && !wasSent) return [requested, undefined];
  const end = {
    outcome: outcomeOf(outcome),
    cost: charged?.cost ?? zero,
    usage: charged === undefined ? exchange.find(usageReport)?.usage : charged.usage,
  };
  return [{ ...requested, model: exchange.get(model).id }, end];
}

function outcomeOf({ kind, error, status }: Outcome): AdmissionEnd['outcome'] {
  if (kind === 'client_left') return 'client_left';
  return kind === 'complete' && error === undefined && status < 400 ? 'answered' : 'failed';
}
