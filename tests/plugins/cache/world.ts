/** The plugin `cache` with exchanges of a test, without a gateway: what reaches the model, what is answered by it, and at what price. */
import type { Answer } from '../../../core/contract/message.ts';
import plugin from '../../../plugins/cache/index.ts';
import { type Caller, caller } from '../../../plugins/common/domain/accounts.ts';
import { answerPolicies, type Call, call, usageReport } from '../../../plugins/common/domain/calls.ts';
import { type ServedAnswer, servedBy } from '../../../plugins/common/domain/ledger.ts';
import { type Model, model } from '../../../plugins/common/domain/models.ts';
import { flatBook } from '../../../plugins/common/domain/prices.ts';
import { type FakeExchange, type FakeHost, fakeExchange, fakeHost, setUp } from '../../helpers/fakes.ts';

export interface Requested {
  readonly account?: string;
  readonly project?: string;
  readonly key?: string;
  readonly policies?: string;
  readonly price?: bigint;
  readonly version?: string;
  readonly target?: string;
  readonly body?: object | string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly call?: Partial<Call>;
  readonly caller?: Partial<Caller>;
}

const models = new Map<string, Model>();

/** The same object for the same model, as the catalogue has it. */
function modelOf({ price = 1_000n, version = 'v1', target = 'vendor' }: Requested): Model {
  const id = `${price} ${version} ${target}`;
  const targets = [{ provider: target, model: 'm', weight: 0 }];
  const known =
    models.get(id) ??
    ({ id: 'm', kind: 'embedding', targets, prices: flatBook({ input: price }, version) } as unknown as Model);
  models.set(id, known);
  return known;
}

export function exchangeOf(requested: Requested = {}): FakeExchange {
  const {
    account = 'ada',
    key = 'k1',
    project,
    policies,
    body = { model: 'm', input: 'Hello' },
    headers = {},
  } = requested;
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const known: Partial<Call> = {
    protocol: 'embeddings',
    model: 'm',
    stream: false,
    billable: true,
    choices: 1,
    inputTokens: 10,
    ...requested.call,
  };
  return fakeExchange({
    endpoint: { operation: 'embeddings', path: '/v1/embeddings', setsOnOpen: [call], body: 'json' },
    request: { body: Buffer.from(text), bodyBytes: text.length, headers, path: '/v1/embeddings' },
    facts: [
      [call, known],
      [model, modelOf(requested)],
      [caller, { accountId: account, keyId: key, ...(project === undefined ? {} : { project }), ...requested.caller }],
      ...(policies === undefined
        ? []
        : [[answerPolicies, { digest: () => policies }] as [typeof answerPolicies, object]]),
    ],
  });
}

export interface Node {
  readonly host: FakeHost;
  /** Calls that have reached the model. */
  readonly made: () => number;
  /** How the exchange was answered: `hit`, `miss`, …; undefined: the cache is not for it. */
  send(exchange: FakeExchange, upstream?: () => Promise<Answer>): Promise<string | undefined>;
}

export const rule = { keep: '1h', price: 0.1 };

/** The answer of the model, which has ended well. */
export const answered = (exchange: FakeExchange, body: string | AsyncIterable<Uint8Array> = '{"data":[]}'): Answer => {
  exchange.set(usageReport, {
    usage: { input: 7 },
    estimated: false,
    terminal: true,
    upstreamId: undefined,
    finish: undefined,
  });
  return { status: 200, headers: { 'content-type': 'application/json' }, body };
};

export async function startNode(section: object = {}, host: FakeHost = fakeHost()): Promise<Node> {
  const instance = await setUp(plugin, host, { of: [rule], ...section });
  let made = 0;
  return {
    host,
    made: () => made,
    async send(exchange, upstream = async () => answered(exchange)) {
      const answer = await instance.handle!(exchange, () => {
        made += 1;
        return upstream();
      });
      if (typeof answer.body !== 'string' && !(answer.body instanceof Uint8Array)) for await (const _ of answer.body);
      const served = exchange.find(servedBy);
      if (served !== undefined) exchange.watcher!.head(200, {});
      await exchange.end(answer.status === 200 ? {} : { status: answer.status });
      return answer.headers['x-cache'];
    },
  };
}

export const servedOf = (exchange: FakeExchange): ServedAnswer | undefined => exchange.find(servedBy);
