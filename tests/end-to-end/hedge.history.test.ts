/** Whatever two attempts do side by side: one charge within the hold, and both bills of the vendors are covered. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { after, before as begin, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { inspect } from 'node:util';
import { runsOf } from '../helpers/histories.ts';
import { fc } from '../helpers/properties.ts';
import { before, type Counts, costOf, streamed, whole } from './hedging.ts';
import { modelAt, startTestbed, type Testbed } from './testbed.ts';

/** What one vendor does with a request, after a time. */
interface Deed {
  readonly kind: 'answer' | 'answer without usage' | 'bad request' | 'busy' | 'failure' | 'cut' | 'silence';
  readonly afterMs: number;
}
interface Course {
  readonly first: Deed;
  readonly second: Deed;
  readonly stream: boolean;
  readonly drained: boolean;
  readonly leavesAfterMs: number | undefined;
}

const counts: Record<string, Counts> = { first: { input: 7, output: 3 }, second: { input: 8, output: 5 } };
const costsNothing = { input: 0, output: 0 };

/** A vendor that does as the prompt tells it, and bills what it has done, by course and its own name. */
interface Biller {
  readonly origin: string;
  readonly bills: Map<string, bigint>;
  stop(): Promise<void>;
}

async function startBiller(name: 'first' | 'second'): Promise<Biller> {
  const bills = new Map<string, bigint>();
  const server = createServer((incoming, outgoing) => void serve(name, bills, incoming, outgoing));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    bills,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}

async function serve(
  name: 'first' | 'second',
  bills: Biller['bills'],
  incoming: IncomingMessage,
  outgoing: ServerResponse,
) {
  const chunks: Buffer[] = [];
  for await (const chunk of incoming) chunks.push(chunk);
  const request = JSON.parse(Buffer.concat(chunks).toString()) as { messages: { content: string }[] };
  const { id, course } = JSON.parse(request.messages[0]!.content) as { id: string; course: Course };
  const { kind, afterMs } = course[name];
  const own = counts[name]!;
  const bill = (billed: Counts) => bills.set(id, (bills.get(id) ?? 0n) + costOf(billed));
  await pause(afterMs);
  // A prompt that was read is billed, also for a client that has left meanwhile.
  if (outgoing.destroyed || kind === 'silence') return bill({ ...own, output: 0 });
  if (kind === 'bad request' || kind === 'busy' || kind === 'failure') {
    bill(kind === 'failure' ? { ...own, output: 0 } : costsNothing);
    return outgoing.writeHead({ 'bad request': 400, busy: 503, failure: 500 }[kind]).end('{"error":{"message":"no"}}');
  }
  const form = course.stream ? streamed : whole;
  const { body, headers } = form(name, kind === 'answer without usage' ? undefined : own);
  outgoing.writeHead(200, headers ?? { 'content-type': 'application/json' });
  if (kind === 'cut') {
    bill({ ...own, output: course.stream ? 1 : 0 });
    return outgoing.write(body!.slice(0, body!.length / 2), () => outgoing.destroy());
  }
  bill(kind === 'answer' ? own : { ...own, output: 2 });
  outgoing.end(body);
}

let testbed: Testbed;
let billers: { first: Biller; second: Biller };
begin(async () => {
  billers = { first: await startBiller('first'), second: await startBiller('second') };
  const at = ({ origin }: Biller, more: object = {}) => ({
    keys: 'key',
    speaks: { chat: `${origin}/v1` },
    timeouts: { first_byte: '300ms' },
    ...more,
  });
  const drain = { client_left: 'drain', drain: { longest: '1s' } };
  const { first, second } = billers;
  testbed = await startTestbed({
    providers: () => ({ first: at(first), second: at(second), patient: at(first, drain), steady: at(second, drain) }),
    models: { reported: modelAt('first', 'second'), drained: modelAt('patient', 'steady') },
    more: { route: { hedge: { after: '30ms', share: 1 }, breaker: { failures: 32, share: 1 }, attempts: 2 } },
  });
});
after(async () => {
  await testbed.stop();
  await Promise.all([billers.first.stop(), billers.second.stop()]);
});

const deed = fc.record<Deed>({
  kind: fc.constantFrom('answer', 'answer', 'answer without usage', 'bad request', 'busy', 'failure', 'cut', 'silence'),
  afterMs: fc.constantFrom(0, 20, 50, 60, 80, 90, 120),
});
const aCourse = fc.record<Course>({
  first: deed,
  second: deed,
  stream: fc.boolean(),
  drained: fc.boolean(),
  leavesAfterMs: fc.option(fc.constantFrom(10, 45, 75, 100), { nil: undefined, freq: 4 }),
});

let runs = 0;
let hedged = 0;

async function follow(course: Course): Promise<void> {
  const id = `course ${++runs}`;
  const customer = await testbed.customer();
  const model = course.drained ? 'drained' : 'reported';
  const prompt = JSON.stringify({ id, course });
  const init = course.leavesAfterMs === undefined ? {} : { signal: AbortSignal.timeout(course.leavesAfterMs) };
  await testbed.call(customer, 'chat', { model, prompt, stream: course.stream }, init).catch(() => undefined);
  await pause(130);
  const bills = () => [billers.first.bills.get(id), billers.second.bills.get(id)];
  // A client may leave before anything was set aside for it.
  if (course.leavesAfterMs !== undefined && bills().every((bill) => bill === undefined)) return;
  const { calls, charges, attempts: own, ends } = await testbed.records(customer);
  if (own.length === 2) hedged += 1;
  const what = inspect({ course, ends, own }, { depth: 4 });
  const charged = before - (await testbed.balance(customer));
  const { held } = calls[0]!;
  assert.ok(charged >= 0n && charged <= held, what);
  assert.equal(
    charged,
    charges.reduce((sum, { cost }) => sum + cost, 0n),
    what,
  );
  assert.ok(own.filter(({ bearer: who }) => who === 'client').length === charges.length && charges.length <= 1, what);
  const absorbed = own.reduce((sum, row) => sum + row.absorbed, 0n);
  const billed = bills().reduce<bigint>((sum, bill) => sum + (bill ?? 0n), 0n);
  assert.ok(charged + absorbed >= billed, `${charged} + ${absorbed} < ${billed}: ${what}`);
  const isExact = course.drained && [course.first, course.second].every(({ kind }) => kind === 'answer');
  if (isExact && own.every(({ result }) => result === 'answered')) assert.equal(charged + absorbed, billed, what);
}

test("random courses of two attempts are charged once, within the hold, and cover the vendors' bills", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(aCourse, { minLength: 12, maxLength: 12 }), async (courses) => {
      await Promise.all(courses.map(follow));
    }),
    { numRuns: runsOf(5, 10), endOnFailure: true },
  );
  assert.ok(hedged > runs / 10, `only ${hedged} of ${runs} had two attempts`);
});

test('the ledger passes its audit at the end', () => testbed.audit());
