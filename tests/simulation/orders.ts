/** The clients of tasks: who orders what, where, and who wants it taken back. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { GatewayError } from '../../core/contract/errors.ts';
import { toGatewayError } from '../../core/contract/upstream-failures.ts';
import { LiveExchange } from '../../core/http/exchange.ts';
import type { IncomingRequest } from '../../core/http/incoming-request.ts';
import { caller } from '../../plugins/common/domain/accounts.ts';
import { type Catalog, model } from '../../plugins/common/domain/models.ts';
import { plan } from '../../plugins/common/domain/plans.ts';
import { priceRatio } from '../../plugins/common/domain/price-ratio.ts';
import type { Order } from '../../plugins/common/media/adapters.ts';
import { submission } from '../../plugins/task-store/orders/waiting.ts';
import type { Chance } from './chance.ts';
import type { Errands } from './errands.ts';
import type { Node } from './node.ts';
import type { Oracle } from './oracle.ts';
import type { Process } from './process.ts';
import { type AccountProfile, drawMedia, type PricedModel, type Profile } from './profile.ts';
import type { Schedule } from './schedule.ts';
import type { TaskTrace } from './tasks-oracle.ts';

const mediaIds = ['painter', 'filmer'] as const;
const one = { numerator: 1n, denominator: 1n };
/** Orders that are remembered to be taken back. */
const remembered = 6;
const noQuery = new URLSearchParams();
const noSocket = {} as IncomingMessage & ServerResponse;

export interface OrdersOptions {
  readonly schedule: Schedule;
  readonly chance: Chance;
  readonly profile: Profile;
  readonly oracle: Oracle;
  readonly nodes: readonly Node[];
  readonly errands: Errands;
  /** On which plan the account is, as this node sees it. */
  readonly planOf: (account: AccountProfile, node: Node) => AccountProfile['plan'];
}

interface Taken {
  readonly id: string;
  readonly trace: TaskTrace;
}

export class Orders {
  readonly #options: OrdersOptions;
  readonly #models = new Map<string, PricedModel>();
  #taken: Taken[] = [];
  #count = 0;

  constructor(options: OrdersOptions) {
    this.#options = options;
    this.changePrices();
  }

  readonly catalog: Catalog = {
    find: (id) => this.#models.get(id)?.model,
    list: () => Array.from(this.#models.values(), (each) => each.model),
  };

  changePrices(): void {
    for (const id of mediaIds) this.#models.set(id, drawMedia(this.#options.chance, id, this.#count));
  }

  /** Somebody orders something, or would rather not have it. */
  happen(): void {
    const { chance, profile, nodes } = this.#options;
    if (chance.oneIn(5)) this.#takeBack();
    const account = chance.pick(profile.accounts);
    const node = chance.pick(nodes);
    if (node.serving !== undefined) this.#order(account, node, node.serving);
  }

  #order(account: AccountProfile, node: Node, process: Process): void {
    const { schedule, chance, oracle } = this.#options;
    schedule.current = process.life;
    this.#count += 1;
    const id = chance.pick(mediaIds);
    const { model: entry, price } = this.#models.get(id)!;
    const exchange = exchangeOf(process);
    const trace: TaskTrace = {
      id: exchange.id,
      name: `order-${this.#count}`,
      account: account.id,
      life: process.life,
      list: price,
      ratio: account.ratio ?? one,
      input: chance.pick([0, 100, 3_000]),
      output: chance.pick([1, 200, 3_000]),
      // A painter makes one with each call.
      count: id === 'painter' && chance.oneIn(3) ? chance.between(2, 4) : 1,
      wantsWord: chance.oneIn(2),
      receipts: [],
      reported: undefined,
      isCancelled: false,
      holds: 0,
      ends: 0,
    };
    oracle.tasks.arrived(trace);
    oracle.limits.entered(trace);
    const terms = this.#options.planOf(account, node);
    exchange.set(caller, { accountId: account.id, keyId: `${account.id}-key`, plan: terms.name, models: undefined });
    exchange.set(plan, terms);
    exchange.set(model, entry);
    if (account.ratio !== undefined) exchange.set(priceRatio, account.ratio);
    const callbackUrl = trace.wantsWord ? `http://127.0.0.1:9/${trace.name}` : undefined;
    const order = orderOf(trace, id, chance.oneIn(4));
    exchange.set(submission, { order, waits: false, form: 'url', callbackUrl });
    process.order(exchange).then(
      ({ body }) => this.#report(exchange, trace, (JSON.parse(body as string) as { id: string }).id),
      (error: unknown) => this.#failed(exchange, trace, toGatewayError(error)),
    );
  }

  #report(exchange: LiveExchange, trace: TaskTrace, id: string): void {
    trace.reported = 'taken';
    this.#options.oracle.limits.passed(trace);
    this.#taken = [...this.#taken.slice(-remembered), { id, trace }];
    this.#end(exchange, trace, 200);
  }

  #failed(exchange: LiveExchange, trace: TaskTrace, error: GatewayError): void {
    const { limits } = this.#options.oracle;
    if (error.kind !== 'internal') trace.reported = 'refused';
    if (error.kind === 'rate_limited') limits.stopped(trace, error.code);
    else limits.passed(trace);
    this.#end(exchange, trace, error.status);
  }

  #end(exchange: LiveExchange, trace: TaskTrace, status: number): void {
    this.#options.schedule.trace(status);
    this.#options.oracle.limits.ended(trace);
    void exchange.end({ kind: 'complete', status, bytesOut: 0, totalMs: 0 });
  }

  /** By the rules of the endpoints; of what has begun it may be too late. */
  #takeBack(): void {
    const { chance, errands, oracle } = this.#options;
    if (this.#taken.length === 0) return;
    const { id, trace } = chance.pick(this.#taken);
    errands.run({
      label: 'cancel',
      work: ({ tasks }) => tasks!.admin.cancel(id, trace.account, new AbortController().signal),
      reported: () => {
        trace.isCancelled = true;
      },
      refused: ({ kind }: GatewayError) => {
        if (kind === 'not_found') oracle.violations.add('M13', trace.id, 'a task that was taken is not found');
      },
    });
  }
}

function exchangeOf(process: Process): LiveExchange {
  const { endpoint } = process.tasks!;
  const request = { path: endpoint.path, query: noQuery, headers: {}, body: Buffer.alloc(0) };
  const incoming = request as unknown as IncomingRequest;
  return new LiveExchange(process.newId(), endpoint, incoming, noSocket, noSocket, process.host.clock, {
    log: process.log,
    sources: [],
  });
}

/** `waited`: its client prefers an immediate error for busy vendors. */
function orderOf({ name, input, output, count }: TaskTrace, model: string, waited: boolean): Order {
  const kind = model === 'painter' ? 'image' : 'video';
  const extra = { input, output };
  return { kind, model, prompt: name, count, references: [], extra, ...(waited ? { waited } : {}) };
}
