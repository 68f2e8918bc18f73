/** How request bodies are read: bounds on what they hold, alone, together and by account, and on what is unpacked at once. */
import assert from 'node:assert/strict';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { PassThrough } from 'node:stream';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { brotliCompressSync, constants, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { bodyOwner } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import { createLog } from '../../core/gateway/log.ts';
import { type BodyLimits, BodyReader } from '../../core/http/body.ts';
import { BodyBudget } from '../../core/http/bounds/body-budget.ts';
import { FairTurns } from '../../core/http/bounds/fair-turns.ts';
import { LiveExchange } from '../../core/http/exchange.ts';
import { IncomingRequest } from '../../core/http/incoming-request.ts';

const mebi = 2 ** 20;
const limits: BodyLimits = {
  maxBytes: 32 * mebi,
  maxBytesInFlight: 64 * mebi,
  maxBytesPerAccount: 64 * mebi,
  maxDecoding: 8,
  maxValues: 100_000,
};
const quickBrotli = (bytes: Buffer | string) =>
  brotliCompressSync(bytes, { params: { [constants.BROTLI_PARAM_QUALITY]: 4 } });
const packers = { gzip: gzipSync, deflate: deflateSync, br: quickBrotli, zstd: zstdCompressSync };
type Name = keyof typeof packers;
const names = Object.keys(packers) as Name[];

function exchangeOf(
  body: Uint8Array | readonly Uint8Array[],
  encoding?: string,
  account?: string,
  isEnded = true,
): LiveExchange {
  const headers: Record<string, string> = {};
  if (encoding !== undefined) headers['content-encoding'] = encoding;
  const incoming = Object.assign(new PassThrough(), { headers, method: 'POST', socket: { remoteAddress: '10.0.0.1' } });
  const message = incoming as unknown as IncomingMessage;
  const request = new IncomingRequest(message, '/a', '', {});
  const clock = { now: () => 0, monotonic: () => 0 };
  const endpoint = { method: 'POST', path: '/a', operation: 'a' } as const;
  const exchange = new LiveExchange('id', endpoint, request, message, {} as ServerResponse, clock, {
    log: createLog('silent'),
    sources: [],
  });
  if (account !== undefined) exchange.set(bodyOwner, account);
  for (const packet of body instanceof Uint8Array ? [body] : body) incoming.write(packet);
  if (isEnded) incoming.end();
  return exchange;
}

async function refusal(reading: undefined | Promise<void>): Promise<GatewayError> {
  const error = await reading!.then(
    () => undefined,
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof GatewayError, String(error));
  return error;
}

for (const name of names) {
  test(`${name}: a body arrives decoded, and counts with its decoded size until it is released`, async () => {
    const reader = new BodyReader(limits);
    const text = JSON.stringify({ text: Array.from({ length: 30_000 }, (_, index) => index * 7_919) });
    const exchange = exchangeOf(packers[name](text), name, 'one');
    await reader.read(exchange);
    assert.equal(Buffer.from(exchange.request.body).toString(), text);
    assert.equal(reader.heldBytes, text.length);
    reader.release(exchange);
    assert.equal(reader.heldBytes, 0);
  });

  test(`${name}: a body that decompresses to more than a hundred times its size is stopped at that bound`, async () => {
    const reader = new BodyReader(limits);
    const packed = packers[name](Buffer.alloc(12 * mebi));
    const exchange = exchangeOf(packed, name, 'one');
    const error = await refusal(reader.read(exchange));
    assert.equal(error.status, 413);
    assert.match(error.message, /100 times/);
    assert.ok(reader.heldBytes <= Math.max(mebi, 100 * packed.length) + packed.length, `${reader.heldBytes} bytes`);
    reader.release(exchange);
    assert.equal(reader.heldBytes, 0);
  });

  test(`${name}: below a megabyte any compression ratio is accepted`, async () => {
    const reader = new BodyReader(limits);
    const exchange = exchangeOf(packers[name](Buffer.alloc(900_000, 0x20)), name);
    await reader.read(exchange);
    assert.equal(exchange.request.body.length, 900_000);
  });

  test(`${name}: a damaged or truncated body is a bad request`, async () => {
    const reader = new BodyReader(limits);
    const packed = packers[name](Buffer.from('hello '.repeat(1_000)));
    for (const broken of [packed.subarray(0, packed.length - 5), Buffer.from('no such thing at all')]) {
      const exchange = exchangeOf(broken, name);
      const error = await refusal(reader.read(exchange));
      assert.equal(error.status, 400);
      reader.release(exchange);
    }
    assert.equal(reader.heldBytes, 0);
    assert.equal(reader.decoding, 0);
  });
}

test('a body takes from the budget as it is decompressed, and is stopped where the budget ends', async () => {
  const reader = new BodyReader({ ...limits, maxBytesInFlight: 2 * mebi });
  const random = Buffer.from(Array.from({ length: 8_000 }, (_, index) => (index * 2_654_435_761) >>> 24));
  const packed = gzipSync(Buffer.concat(Array.from({ length: 1_000 }, () => random)));
  const exchange = exchangeOf(packed, 'gzip', 'one');
  const error = await refusal(reader.read(exchange));
  assert.equal(error.kind, 'overloaded');
  assert.ok(reader.heldBytes <= 2 * mebi);
  reader.release(exchange);
  assert.equal(reader.heldBytes, 0);
});

test('250 concurrent compressed bodies are decompressed a few at a time, within the budget', async () => {
  const reader = new BodyReader(limits);
  const packed = gzipSync(Buffer.alloc(2_900_000, 0x61));
  assert.ok(packed.length * 100 < 2_900_000, 'its ratio is above the bound');
  const mild = gzipSync(JSON.stringify(Array.from({ length: 60_000 }, (_, index) => index)));
  let most = 0;
  let mostDecoding = 0;
  let ended = false;
  const watching = (async () => {
    while (!ended) {
      most = Math.max(most, reader.heldBytes);
      mostDecoding = Math.max(mostDecoding, reader.decoding);
      await turn();
    }
  })();
  const statuses = await Promise.all(
    Array.from({ length: 250 }, async (_, index) => {
      const exchange = exchangeOf(index % 2 === 0 ? packed : mild, 'gzip', `account-${index % 5}`);
      const status = await reader.read(exchange)!.then(
        () => 200,
        (error: GatewayError) => error.status,
      );
      reader.release(exchange);
      return status;
    }),
  );
  ended = true;
  await watching;
  assert.deepEqual([...new Set(statuses)].sort(), [200, 413]);
  assert.ok(mostDecoding <= limits.maxDecoding && mostDecoding > 1, `${mostDecoding} at once`);
  assert.ok(most <= limits.maxBytesInFlight, `${most} bytes`);
  assert.equal(reader.heldBytes, 0);
});

test('an account beyond its share of the budget is refused, and others are served', async () => {
  const reader = new BodyReader({ ...limits, maxBytesInFlight: 4 * mebi, maxBytesPerAccount: mebi });
  const body = Buffer.alloc(700_000, 0x61);
  for (const encoding of [undefined, ...names]) {
    const bytes = encoding === undefined ? body : packers[encoding](body);
    const [first, second, other] = ['one', 'one', 'two'].map((account) => exchangeOf(bytes, encoding, account));
    await reader.read(first!);
    const error = await refusal(reader.read(second!));
    assert.equal(error.status, 429);
    assert.equal(error.code, 'request_bytes');
    assert.ok((error.retryAfterMs ?? 0) >= 1_000);
    await reader.read(other!);
    for (const exchange of [first!, second!, other!]) reader.release(exchange);
    const again = exchangeOf(bytes, encoding, 'one');
    await reader.read(again);
    reader.release(again);
    assert.equal(reader.heldBytes, 0);
  }
});

test('a small body in several packets is complete', async () => {
  const exchange = exchangeOf(['one, ', 'two, ', 'three'].map((text) => Buffer.from(text)));
  Object.assign(exchange.incoming, { complete: true, headers: { 'content-length': '15' } });
  await turn();
  assert.equal(new BodyReader(limits).read(exchange), undefined);
  assert.equal(Buffer.from(exchange.request.body).toString(), 'one, two, three');
  assert.equal(exchange.request.bodyBytes, 15);
});

test('a small body in the packet of its head is complete at once, and counts as any other', async () => {
  const reader = new BodyReader({ ...limits, maxBytesPerAccount: 8 });
  const arrived = async (body: string, account: string) => {
    const exchange = exchangeOf(Buffer.from(body), undefined, account);
    Object.assign(exchange.incoming, { complete: true, headers: { 'content-length': String(body.length) } });
    await turn();
    return exchange;
  };
  const [first, second, empty] = await Promise.all([
    arrived('hello', 'one'),
    arrived('again', 'one'),
    arrived('', 'two'),
  ]);
  assert.equal(reader.read(first), undefined);
  assert.equal(Buffer.from(first.request.body).toString(), 'hello');
  assert.deepEqual([first.request.bodyBytes, reader.heldBytes], [5, 5]);
  assert.throws(
    () => reader.read(second),
    (error: GatewayError) => error.code === 'request_bytes',
  );
  assert.equal(reader.read(empty), undefined);
  assert.equal(empty.request.body.length, 0);
  await turn();
  assert.ok(
    first.incoming.readableEnded && empty.incoming.readableEnded,
    'the connection is free for the next request',
  );
  reader.release(first);
  assert.equal(reader.heldBytes, 0);
});

test('a small body is complete when all its bytes are there, before its end is noted, and the end is still read', async () => {
  const exchange = exchangeOf(Buffer.from('hello'), undefined, undefined, false);
  const incoming = Object.assign(exchange.incoming as unknown as PassThrough, {
    complete: false,
    headers: { 'content-length': '5' },
  });
  await turn();
  assert.equal(new BodyReader(limits).read(exchange), undefined);
  assert.equal(Buffer.from(exchange.request.body).toString(), 'hello');
  assert.equal(incoming.listenerCount('close') + incoming.listenerCount('error'), 0, 'nothing waits for more of it');
  incoming.end();
  await turn();
  assert.ok(incoming.readableEnded, 'the connection is free for the next request');
});

test('a small body of which bytes are missing is waited for, and keeps no listener when it is whole', async () => {
  const exchange = exchangeOf(Buffer.from('hel'), undefined, undefined, false);
  const incoming = Object.assign(exchange.incoming as unknown as PassThrough, {
    complete: false,
    headers: { 'content-length': '5' },
  });
  const listeners = () => ['data', 'end', 'close', 'error'].map((name) => incoming.listenerCount(name));
  const before = listeners();
  await turn();
  const reading = new BodyReader(limits).read(exchange);
  incoming.end('lo');
  await reading;
  assert.equal(Buffer.from(exchange.request.body).toString(), 'hello');
  assert.deepEqual(listeners(), before);
});

test('names of members of plain objects are unknown encodings', async () => {
  const reader = new BodyReader(limits);
  for (const name of ['constructor', 'toString', '__proto__', 'x-constructor', 'hasOwnProperty', 'valueOf'])
    assert.throws(
      () => reader.read(exchangeOf(Buffer.from('{}'), name)),
      (error: GatewayError) => error.kind === 'unsupported',
      name,
    );
});

test('waiting work takes turns by owner, and the queue of an owner is bounded', async () => {
  const turns = new FairTurns({ running: 1, waiting: 3 });
  assert.equal(await turns.acquire('busy'), true);
  const order: string[] = [];
  const work = async (owner: string) => {
    if (!(await turns.acquire(owner))) return void order.push(`${owner} refused`);
    order.push(owner);
    await turn();
    turns.release();
  };
  const all = ['busy', 'busy', 'busy', 'busy', 'other', 'third'].map(work);
  turns.release();
  await Promise.all(all);
  assert.deepEqual(order, ['busy refused', 'busy', 'other', 'third', 'busy', 'busy']);
  assert.equal(turns.running, 0);
});

test('bodies may fill the bounds of all and of an account to the last byte; one byte more is refused', () => {
  const budget = new BodyBudget({ maxBytesInFlight: 100, maxBytesPerAccount: 60 });
  const holderOf = (owner: string) => ({ heldBytes: 0, share: budget.shareOf(owner) });
  const [one, other] = [holderOf('one'), holderOf('other')];
  budget.take(one, 60);
  assert.throws(() => budget.take(one, 1), { kind: 'rate_limited', code: 'request_bytes' });
  budget.take(other, 40);
  assert.throws(() => budget.take(other, 1), { kind: 'overloaded' });
  assert.deepEqual([budget.heldBytes, one.heldBytes, other.heldBytes], [100, 60, 40]);
  budget.release(one, 1);
  budget.take(other, 1);
});
