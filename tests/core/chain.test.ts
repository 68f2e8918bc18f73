/** The compiled onion: when a request is opened, and how an endpoint that answers by itself may still forward. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { defineContextKey, type Endpoint, type Plugin } from '../../core/contract/contract.ts';
import type { Answer } from '../../core/contract/message.ts';
import { z } from '../../core/contract/schema.ts';
import { compileChain, type InstalledPlugin } from '../../core/http/chain.ts';
import type { LiveExchange } from '../../core/http/exchange.ts';
import { fakeExchange, okAnswer } from '../helpers/fakes.ts';

const requested = defineContextKey<string>('requested');

function reader(seen: string[]): InstalledPlugin {
  const plugin = { name: 'reader', config: z.strictObject({}), requires: [requested], setup: () => ({}) } as Plugin;
  return {
    plugin,
    instance: {
      applies: () => true,
      handle: (exchange, next) => {
        seen.push(exchange.get(requested));
        return next();
      },
    },
  };
}

function run(endpoint: Partial<Endpoint>, plugins: InstalledPlugin[], forward: () => Promise<Answer>): Promise<Answer> {
  const whole = { method: 'POST', path: '/', operation: 'x', setsOnOpen: [requested], ...endpoint } as Endpoint;
  const chain = compileChain(whole, plugins, async () => {}, forward);
  return chain(fakeExchange({ endpoint: whole }) as unknown as LiveExchange);
}

test('an asynchronous opening ends before the first plugin that reads its values', async () => {
  const seen: string[] = [];
  const open: Endpoint['open'] = async (exchange) => {
    await new Promise((resolve) => void setImmediate(resolve));
    exchange.set(requested, 'looked up');
  };
  await run({ open }, [reader(seen)], async () => okAnswer);
  assert.deepEqual(seen, ['looked up']);
});

test('an opening that fails late keeps all inner plugins from running', async () => {
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

test('only a plugin that retries calls next twice, and an error below it rejects', async () => {
  const installed = (retries?: true): InstalledPlugin => ({
    plugin: { name: 'twice', config: z.strictObject({}), retries, setup: () => ({}) } as unknown as Plugin,
    instance: { applies: () => true, handle: (_exchange, next) => next().catch(() => next()) },
  });
  const broken: InstalledPlugin = {
    plugin: { name: 'broken', config: z.strictObject({}), setup: () => ({}) } as Plugin,
    instance: {
      applies: () => true,
      handle: () => {
        throw new Error('thrown, not rejected');
      },
    },
  };
  await assert.rejects(
    run({ setsOnOpen: [] }, [installed(true), broken], async () => okAnswer),
    /thrown, not rejected/,
  );
  await assert.rejects(
    run({ setsOnOpen: [] }, [installed(), broken], async () => okAnswer),
    /"twice" called next\(\) twice/,
  );
});

test('an endpoint that answers by itself forwards only by calling forward', async () => {
  let forwarded = 0;
  const forward = async () => {
    forwarded++;
    return { ...okAnswer, body: 'from the upstream' };
  };
  const own = await run({ handle: () => okAnswer, setsOnOpen: [] }, [], forward);
  assert.deepEqual([own.body, forwarded], ['{}', 0]);
  const handed = await run({ handle: (_exchange, next) => next(), setsOnOpen: [] }, [], forward);
  assert.deepEqual([handed.body, forwarded], ['from the upstream', 1]);
});
