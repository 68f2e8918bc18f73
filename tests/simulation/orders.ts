/** The clients of tasks: who orders what, where, and who wants it taken back. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type GatewayError, toGatewayError } from '../../core/contract/errors.ts';
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
import type { TaskStory } from './tasks-oracle.ts';

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
  readonly story: TaskStory;
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
    const story: TaskStory = {
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
      told: undefined,
      isCancelled: false,
      holds: 0,
      ends: 0,
    };
    oracle.tasks.arrived(story);
    oracle.limits.entered(story);
    const terms = this.#options.planOf(account, node);
    exchange.set(caller, { accountId: account.id, keyId: `${account.id}-key`, plan: terms.name, models: undefined });
    exchange.set(plan, terms);
    exchange.set(model, entry);
    if (account.ratio !== undefined) exchange.set(priceRatio, account.ratio);
    const callbackUrl = story.wantsWord ? `http://127.0.0.1:9/${story.name}` : undefined;
    const order = orderOf(story, id, chance.oneIn(4));
    exchange.set(submission, { order, waits: false, form: 'url', callbackUrl });
    process.order(exchange).then(
      ({ body }) => this.#told(process, exchange, story, (JSON.parse(body as string) as { id: string }).id),
      (error: unknown) => this.#failed(process, exchange, story, toGatewayError(error)),
    );
  }

  #told(process: Process, exchange: LiveExchange, story: TaskStory, id: string): void {
    story.told = 'taken';
    this.#options.oracle.limits.passed(story);
    this.#taken = [...this.#taken.slice(-remembered), { id, story }];
    this.#end(process, exchange, story, 200);
  }

  #failed(process: Process, exchange: LiveExchange, story: TaskStory, error: GatewayError): void {
    const { limits } = this.#options.oracle;
    if (error.kind !== 'internal') story.told = 'refused';
    if (error.kind === 'rate_limited') limits.stopped(story, error.code);
    else limits.passed(story);
    this.#end(process, exchange, story, error.status);
  }

  #end(process: Process, exchange: LiveExchange, story: TaskStory, status: number): void {
    this.#options.schedule.trace(status);
    this.#options.oracle.limits.ended(story);
    void exchange.end({ kind: 'complete', status, bytesOut: 0, totalMs: 0 }, process.log);
  }

  /** By the rules of the endpoints; of what has begun it may be too late. */
  #takeBack(): void {
    const { chance, errands, oracle } = this.#options;
    if (this.#taken.length === 0) return;
    const { id, story } = chance.pick(this.#taken);
    errands.run({
      label: 'cancel',
      work: ({ tasks }) => tasks!.desk.cancel(id, story.account, new AbortController().signal),
      told: () => {
        story.isCancelled = true;
      },
      refused: ({ kind }: GatewayError) => {
        if (kind === 'not_found') oracle.violations.add('M13', story.id, 'a task that was taken is not found');
      },
    });
  }
}

function exchangeOf(process: Process): LiveExchange {
  const { endpoint } = process.tasks!;
  const request = { path: endpoint.path, query: noQuery, headers: {}, body: Buffer.alloc(0) };
  const incoming = request as unknown as IncomingRequest;
  return new LiveExchange(process.newId(), endpoint, incoming, noSocket, noSocket, process.host.clock);
}

/** `waited`: its client would rather be told of busy vendors at once. */
function orderOf({ name, input, output, count }: TaskStory, model: string, waited: boolean): Order {
  const kind = model === 'painter' ? 'image' : 'video';
  const extra = { input, output };
  return { kind, model, prompt: name, count, references: [], extra, ...(waited ? { waited } : {}) };
}
