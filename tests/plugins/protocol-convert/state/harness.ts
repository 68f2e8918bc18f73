/** The memory of earlier answers on a fake host: requests opened as the plugin opens them, answers kept as it keeps them. */

import type { UpstreamRequest } from '../../../../core/contract/contract.ts';
import { upstreamRequest } from '../../../../core/contract/contract.ts';
import type { Answer } from '../../../../core/contract/message.ts';
import { type JsonObject, tryParse } from '../../../../core/json/json.ts';
import { caller } from '../../../../plugins/common/domain/accounts.ts';
import { type Pinned, pinned } from '../../../../plugins/common/domain/calls.ts';
import { providers, type Target } from '../../../../plugins/common/domain/upstreams.ts';
import { type Opened, opened } from '../../../../plugins/common/wire/protocols.ts';
import { stateSchema } from '../../../../plugins/protocol-convert/config.ts';
import { chatWithInput, responsesWithChat } from '../../../../plugins/protocol-convert/protocols/cross-protocol.ts';
import { ResponsesUsageMeter } from '../../../../plugins/protocol-convert/protocols/responses/usage-meter.ts';
import { readRequestBody } from '../../../../plugins/protocol-convert/request/checks.ts';
import { openState, type ResponseState } from '../../../../plugins/protocol-convert/state/index.ts';
import providersPlugin from '../../../../plugins/providers/index.ts';
import { type FakeExchange, type FakeHost, fakeExchange, fakeHost, setUp } from '../../../helpers/fakes.ts';
import { targetFor } from '../harness.ts';

export interface World {
  readonly host: FakeHost;
  readonly state: ResponseState;
  /** Opens a request and finds what it builds on. */
  open(body: JsonObject, options?: { account?: string; path?: string }): Promise<Request>;
  /** A turn that is translated: its answer is kept under the id that is returned. */
  keep(
    body: JsonObject,
    output: readonly JsonObject[],
    options?: { account?: string; status?: string },
  ): Promise<string>;
  /** A turn that is relayed, answered by this id. */
  relay(body: JsonObject, answer: JsonObject, options?: { account?: string; credential?: string }): Promise<void>;
  /** Calls an address of kept answers. `upstream` answers what is forwarded. */
  call(method: string, path: string, options?: { account?: string; upstream?: Answer }): Promise<Called>;
}

interface Request {
  readonly exchange: FakeExchange;
  readonly request: Opened;
  readonly pin: Pinned | undefined;
}

interface Called {
  readonly status: number;
  readonly json: JsonObject;
  readonly text: string;
  readonly sent: UpstreamRequest | undefined;
}

const vendors = {
  vendor: { keys: ['key-one', 'key-two'], speaks: { responses: 'https://vendor.example/v1' } },
  other: { keys: 'key-other', speaks: { responses: 'https://other.example/v1' } },
};

const afterImmediate = () => new Promise((resolve) => void setImmediate(resolve));

export async function world(section: object = {}, host: FakeHost = fakeHost()): Promise<World> {
  if (host.find(providers) === undefined) await setUp(providersPlugin, host, vendors);
  const state = openState(host, stateSchema.parse(section), responsesWithChat);
  await state.start();
  let made = 0;

  function exchangeFor(account: string, body: JsonObject): FakeExchange {
    made++;
    return fakeExchange({
      id: `exchange-${made}-${host.random.fraction().toString(36).slice(2, 8)}`,
      facts: [[caller, { accountId: account, keyId: 'k', plan: 'p', models: undefined }]],
      request: { body: Buffer.from(JSON.stringify(body)) },
      lines: host.lines,
    });
  }

  async function open(body: JsonObject, { account = 'anna', path = '/v1/responses' } = {}): Promise<Request> {
    const exchange = exchangeFor(account, body);
    const endpoint = [chatWithInput, responsesWithChat]
      .flatMap(({ endpoints }) => endpoints)
      .find((candidate) => candidate.path === path)!;
    const request = endpoint.open(readRequestBody(exchange.request.body), exchange);
    exchange.set(opened, request);
    await state.resolver.resolve(exchange, request);
    return { exchange, request: exchange.get(opened), pin: exchange.find(pinned) };
  }

  return {
    host,
    state,
    open,
    async keep(body, output, { status = 'completed', ...options } = {}) {
      const { exchange, request } = await open(body, options);
      const id = `resp_${exchange.id}`;
      state.keeper.recordTranslated(exchange, request)?.(JSON.stringify({ id, object: 'response', status, output }));
      await afterImmediate();
      return id;
    },
    async relay(body, answer, { credential = 'vendor#2', ...options } = {}) {
      const { exchange, request } = await open(body, options);
      const provider = credential.split('#')[0]!;
      const to: Target = targetFor('responses', 'm', { provider, credential });
      const tap = new ResponsesUsageMeter();
      tap.whole(answer);
      state.keeper.recordRelayed(exchange, request, to).ended?.(tap);
    },
    async call(method, path, { account = 'anna', upstream } = {}) {
      const [bare, query] = path.split('?') as [string, string | undefined];
      const parts = bare.split('/');
      const pattern = `/v1/responses/:response_id${parts[4] === undefined ? '' : `/${parts[4]}`}`;
      const endpoint = state.endpoints.find((one) => one.method === method && one.path === pattern)!;
      const exchange = fakeExchange({
        facts: [[caller, { accountId: account, keyId: 'k', plan: 'p', models: undefined }]],
        request: { method, query: new URLSearchParams(query), params: { response_id: parts[3]! } },
      });
      const answer = await endpoint.handle!(exchange, async () => {
        if (upstream === undefined) throw new Error('nothing should be forwarded');
        return upstream;
      });
      const text = Buffer.from(answer.body as string).toString();
      const json = (tryParse(text) ?? {}) as JsonObject;
      return { status: answer.status, json, text, sent: exchange.find(upstreamRequest) };
    },
  };
}

export const message = (text: string, id = 'msg_out'): JsonObject => ({
  id,
  type: 'message',
  status: 'completed',
  role: 'assistant',
  content: [{ type: 'output_text', text, annotations: [], logprobs: [] }],
});

export const user = (text: string): JsonObject => ({ type: 'message', role: 'user', content: text });
