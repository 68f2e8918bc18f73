/** Random interleavings of calls and orders: what rules have reserved is settled or given back, each once. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { GatewayError } from '../../../core/contract/errors.ts';
import { setUpAdmission } from '../../../plugins/admission/index.ts';
import { money } from '../../../plugins/common/domain/money.ts';
import {
  type AdmissionRule,
  type AdmittedCall,
  type AdmittedOrders,
  admission,
  admitted,
  admittedOrders,
} from '../../../plugins/common/wire/admission-rules.ts';
import { fakeHost, okAnswer } from '../../helpers/fakes.ts';
import { fc } from '../../helpers/properties.ts';
import { MemoryRows } from './memory-rows.ts';
import { exchangeOf, send } from './world.ts';

const acts = ['reserve', 'reserve', 'reserve', 'skip', 'refuse', 'throw'] as const;
const placings = ['committed', 'rolled back', 'unanswered, committed', 'unanswered, rolled back', 'never'] as const;
const callOf = fc.record({
  rules: fc.array(fc.constantFrom(...acts), { minLength: 3, maxLength: 3 }),
  end: fc.constantFrom('charged', 'sent', 'not sent', 'thrown'),
  placing: fc.option(fc.constantFrom(...placings), { nil: undefined }),
});
type Call = typeof callOf extends fc.Arbitrary<infer T> ? T : never;

/** One process beside others on the same table. */
function processOf(rows: MemoryRows, rules: readonly AdmissionRule[], broken: 'refuse' | 'allow') {
  const host = fakeHost();
  for (const rule of rules) host.extend(admission, rule);
  const instance = setUpAdmission(host, { within: 60_000, broken }, rows);
  return { handle: instance.handle!, settled: () => instance.lifecycle!.stop!(), orders: host.find(admittedOrders)! };
}

class Reservations {
  readonly open = new Set<string>();
  /** Ended before, or of another call. */
  readonly wrong: string[] = [];
  reserved = 0;
  ended = 0;

  rule(
    name: string,
    isDurable: boolean,
    actOf: (id: string) => Call['rules'][number],
    step: () => Promise<void>,
  ): AdmissionRule {
    const end = async (text: string, { id }: AdmittedCall) => {
      // What a rule throws is a line of the log alone.
      if (text !== `${name} ${id}` || !this.open.delete(text)) this.wrong.push(text);
      this.ended += 1;
      await step();
    };
    return {
      name,
      ...(isDurable ? { durable: true } : {}),
      reserve: async ({ id }) => {
        await step();
        const act = actOf(id);
        if (act === 'skip') return undefined;
        if (act === 'refuse') throw new GatewayError('forbidden', 'No.');
        if (act === 'throw') throw new Error('broken');
        this.open.add(`${name} ${id}`);
        this.reserved += 1;
        return `${name} ${id}`;
      },
      settle: end,
      release: end,
    };
  }
}

async function place(exchange: ReturnType<typeof exchangeOf>, rows: MemoryRows, placing: Call['placing']) {
  const reserved = exchange.find(admitted);
  if (reserved === undefined || placing === 'never') return;
  const { orm, commit } = rows.begin();
  await reserved.keep(orm);
  if (placing!.endsWith('committed')) commit();
  if (placing === 'committed') reserved.kept();
  else throw new Error('the order was not placed, as far as is known');
}

async function endOrder(orders: readonly AdmittedOrders[], rows: MemoryRows, id: string, end: Call['end']) {
  const cost = money(end === 'charged' ? 5n : 0n);
  const { orm, commit } = rows.begin();
  const outcome = end === 'charged' ? ('answered' as const) : ('failed' as const);
  await orders[0]!.end(orm, id, { outcome, cost, usage: undefined, sent: end !== 'not sent' });
  commit();
  // The process that has ended it, and others that look for ended orders.
  await Promise.all(orders.map((one) => one.settle(id)));
}

test('reserved equals settled and given back, whatever comes between', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(callOf, { minLength: 1, maxLength: 6 }),
      fc.constantFrom('refuse', 'allow'),
      fc.array(fc.boolean(), { minLength: 3, maxLength: 3 }),
      fc.scheduler(),
      async (calls, broken, durable, scheduler) => {
        const step = () => scheduler.schedule(Promise.resolve());
        const rows = new MemoryRows(step);
        const state = new Reservations();
        const byId = new Map<string, Call>();
        const rules = ['a', 'b', 'c'].map((name, index) =>
          state.rule(name, durable[index]!, (id) => byId.get(id)!.rules[index]!, step),
        );
        const processes = [0, 1].map(() => processOf(rows, rules, broken));
        const run = async (call: Call, index: number) => {
          const exchange = exchangeOf();
          byId.set(exchange.id, call);
          const { handle, settled } = processes[index % 2]!;
          const next = async () => {
            await step();
            if (call.placing !== undefined) await place(exchange, rows, call.placing);
            else if (call.end === 'thrown') throw new Error('broken');
            else if (call.end !== 'not sent') await send(exchange, call.end === 'charged' ? 5n : undefined);
            return okAnswer;
          };
          await Promise.resolve(handle(exchange, next)).catch(() => {});
          await exchange.end();
          await settled();
          if (call.placing?.endsWith('committed'))
            await endOrder(
              processes.map(({ orders }) => orders),
              rows,
              exchange.id,
              call.end,
            );
        };
        await scheduler.waitFor(Promise.all(calls.map(run)));
        assert.deepEqual([...state.open, ...state.wrong], []);
        assert.equal(state.reserved, state.ended);
      },
    ),
    { numRuns: 150 },
  );
});
