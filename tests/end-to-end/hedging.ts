/** Two vendors of one model, either of which can be slow, and a gateway that asks the second beside the first. */
import assert from 'node:assert/strict';
import { type Script, startVendor, type Vendor } from '../helpers/vendor.ts';
import {
  type AttemptRow,
  attemptsByNumber,
  type Customer,
  modelAt,
  startTestbed,
  type Testbed,
  until,
} from './testbed.ts';

export const before = 100n * 1_000_000_000n;

export interface Pair {
  readonly testbed: Testbed;
  readonly first: Vendor;
  readonly second: Vendor;
  /** The attempts of this customer's calls, by number. */
  borne(customer: Customer): Promise<AttemptRow[]>;
  stop(): Promise<void>;
}

/** `afterMs`: of the hedge. The models: `pair` (both), `plain` (both, no hedge), `calm` (both, a hedge after a second), `drained` (both are read on). */
export async function startPair(afterMs: number, share = 1, more: Record<string, unknown> = {}): Promise<Pair> {
  const [first, second] = [await startVendor(), await startVendor()];
  const at = ({ origin }: Vendor, details: object = {}) => ({
    keys: 'key',
    speaks: { chat: `${origin}/v1` },
    ...details,
  });
  const drain = { client_left: 'drain', drain: { longest: '2s' } };
  const testbed = await startTestbed({
    providers: () => ({
      first: at(first),
      second: at(second),
      patient: at(first, drain),
      steady: at(second, drain),
      narrow: at(second, { concurrency: 1 }),
      foreign: { keys: 'key', speaks: { messages: second.origin } },
      twofold: at(first, { keys: ['one', 'two'] }),
    }),
    models: {
      pair: modelAt('first', 'second'),
      plain: { ...modelAt('first', 'second'), hedge: 'off' },
      calm: { ...modelAt('first', 'second'), hedge: '1s' },
      drained: modelAt('patient', 'steady'),
      uneven: modelAt('patient', 'second'),
      tight: modelAt('first', 'narrow'),
      keys: modelAt('twofold'),
      mixed: modelAt('first', 'foreign'),
      lonely: modelAt('first'),
      three: modelAt('first', 'second', 'sandbox'),
    },
    more: {
      route: {
        hedge: { after: `${afterMs}ms`, share },
        breaker: { failures: 32 },
        cooldown: { rate_limited: '1s' },
        affinity: { sessions: false, openings: false },
        ...more,
      },
    },
  });
  return {
    testbed,
    first,
    second,
    borne: async (customer) => attemptsByNumber(await testbed.calls(customer)),
    async stop() {
      await testbed.stop();
      await Promise.all([first.stop(), second.stop()]);
    },
  };
}

/** Resolves when this vendor gets its next request. */
export async function nextRequest({ requests }: Vendor): Promise<void> {
  const before = requests.length;
  await until('the vendor is asked', () => requests.length > before);
}

/** Resolves when this vendor's answer to its next request is out, or its socket is closed. */
export async function nextAnswered(vendor: Vendor): Promise<void> {
  const at = vendor.requests.length;
  await nextRequest(vendor);
  await vendor.requests[at]!.closed;
}

export interface Counts {
  readonly input: number;
  readonly output: number;
}

/** What a whole answer of these counts costs, at the prices of `testbed.ts`. */
export const costOf = ({ input, output }: Counts): bigint => BigInt(input) * 1_000n + BigInt(output) * 2_000n;

const usageOf = ({ input, output }: Counts) => ({
  prompt_tokens: input,
  completion_tokens: output,
  total_tokens: input + output,
});

/** A whole answer that says `text`. */
export function whole(text: string, counts: Counts | undefined, more: Script = {}): Script {
  const body = JSON.stringify({
    id: `c-${text}`,
    object: 'chat.completion',
    choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
    ...(counts === undefined ? {} : { usage: usageOf(counts) }),
  });
  return { body, ...more };
}

/** The same as a stream of two words, a usage and its end. */
export function streamed(text: string, counts: Counts | undefined, more: Script = {}): Script {
  const frame = (delta: object, rest: object = {}) =>
    `data: ${JSON.stringify({ id: `c-${text}`, object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: null }], ...rest })}\n\n`;
  const last =
    counts === undefined
      ? ''
      : `data: ${JSON.stringify({ id: `c-${text}`, object: 'chat.completion.chunk', choices: [], usage: usageOf(counts) })}\n\n`;
  const end = `data: ${JSON.stringify({ id: `c-${text}`, object: 'chat.completion.chunk', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}\n\n`;
  const head = frame({ role: 'assistant', content: text });
  const body = `${head}${frame({ content: ' and so on' })}${end}${last}data: [DONE]\n\n`;
  return { headers: { 'content-type': 'text/event-stream' }, body, cuts: [head.length], ...more };
}

/** One call of a new customer; `asked`: how many requests each vendor got. */
export async function send(pair: Pair, model: string, stream = false, more: object = {}, init: RequestInit = {}) {
  const customer = await pair.testbed.customer();
  const counts = [pair.first.requests.length, pair.second.requests.length];
  const reply = await pair.testbed.call(customer, 'chat', { model, prompt: 'Hello there', stream, more }, init);
  const requested = [pair.first.requests.length - counts[0]!, pair.second.requests.length - counts[1]!];
  return { customer, reply, requested };
}

/** One charge, of `cost`, for the attempt at `provider`; the others are the operator's or no one's. */
export async function checkCharge(pair: Pair, customer: Customer, provider: string, cost: bigint) {
  const { ends, charges } = await pair.testbed.records(customer);
  assert.deepEqual(
    [ends, charges.length, charges[0]!.provider, charges[0]!.cost],
    [['charged answered'], 1, provider, cost],
  );
  assert.equal(before - (await pair.testbed.balance(customer)), cost);
  const rows = await pair.borne(customer);
  const clients = rows.filter(({ bearer: who }) => who === 'client');
  assert.deepEqual(
    clients.map((row) => row.provider),
    [provider],
  );
  return rows;
}
