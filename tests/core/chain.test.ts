/** The compiled onion: when a request is opened, and how an endpoint that answers by itself may still forward. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { compileChain, type Seat } from '../../core/chain.ts';
import { type Answer, defineFact, type Endpoint, type Plugin } from '../../core/contract.ts';
import type { LiveExchange } from '../../core/exchange.ts';
import { z } from '../../core/schema.ts';
import { fakeExchange, okAnswer } from '../helpers/fakes.ts';

const asked = defineFact<string>('asked');

function reader(seen: string[]): Seat {
  const plugin = { name: 'reader', config: z.strictObject({}), reads: [asked], setup: () => ({}) } as Plugin;
  return {
    plugin,
    part: {
      applies: () => true,
      handle: (exchange, next) => {
        seen.push(exchange.get(asked));
        return next();
      },
    },
  };
}

function run(endpoint: Partial<Endpoint>, seats: Seat[], forward: () => Promise<Answer>): Promise<Answer> {
  const whole = { method: 'POST', path: '/', operation: 'x', states: [asked], ...endpoint } as Endpoint;
  const chain = compileChain(whole, seats, async () => {}, forward);
  return chain(fakeExchange({ endpoint: whole }) as unknown as LiveExchange);
}

test('an opening that looks something up is waited for before the first plugin that reads what it states', async () => {
  const seen: string[] = [];
  const open: Endpoint['open'] = async (exchange) => {
    await new Promise((resolve) => void setImmediate(resolve));
    exchange.set(asked, 'looked up');
  };
  await run({ open }, [reader(seen)], async () => okAnswer);
  assert.deepEqual(seen, ['looked up']);
});

test('an opening that fails late keeps everybody below from running', async () => {
  const seen: string[] = [];
  const open: Endpoint['open'] = async () => {
    await Promise.resolve();
    throw new Error('unknown id');
  };
  await assert.rejects(
    run({ open }, [reader(seen)], async () => okAnswer),
    /unknown id/,
  );
  assert.deepEqual(seen, []);
});

test('an endpoint that answers by itself forwards only when it asks for it', async () => {
  let forwarded = 0;
  const forward = async () => {
    forwarded++;
    return { ...okAnswer, body: 'from the upstream' };
  };
  const own = await run({ handle: () => okAnswer, states: [] }, [], forward);
  assert.deepEqual([own.body, forwarded], ['{}', 0]);
  const handed = await run({ handle: (_exchange, next) => next(), states: [] }, [], forward);
  assert.deepEqual([handed.body, forwarded], ['from the upstream', 1]);
});
