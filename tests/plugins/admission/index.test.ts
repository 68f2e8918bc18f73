/** Rules one after the other: their order, refusals, faults, and what is too slow. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { GatewayError } from '../../../core/contract/errors.ts';
import { call } from '../../../plugins/common/domain/calls.ts';
import type { AdmissionEnd, AdmittedCall } from '../../../plugins/common/wire/admission-rules.ts';
import { exchangeOf, noting, send, started } from './world.ts';

test('three rules: reserved in order, settled in reverse, each with the call and its end', async () => {
  const notes: string[] = [];
  const settled: [string, AdmittedCall, AdmissionEnd][] = [];
  const { pass, end: endCall } = await started([
    noting('a', notes, { settle: (...all) => void settled.push(all) }),
    noting('b', notes),
    noting('c', notes, { reserve: () => undefined }),
  ]);
  const exchange = exchangeOf();
  await pass(exchange, () => notes.push('call'));
  await send(exchange, 5n);
  await endCall(exchange);
  assert.deepEqual(notes, ['a+', 'b+', 'call', 'b=']);
  const [[reservation, admittedCall, end]] = settled as [[string, AdmittedCall, AdmissionEnd]];
  assert.equal(reservation, exchange.id);
  const known = { operation: 'chat', model: 'm', amount: 0n, id: exchange.id, at: admittedCall.at };
  assert.deepEqual(admittedCall, {
    ...known,
    caller: { accountId: 'a', keyId: 'k', project: 'search', tags: { env: 'prod' } },
  });
  assert.deepEqual(end, { outcome: 'answered', cost: 5n, usage: { input: 7 } });
});

test('the last rule refuses: the others give back in reverse, and the call is not made', async () => {
  const notes: string[] = [];
  const refusal = new GatewayError('rate_limited', 'No.', { code: 'quota', retryAfterMs: 7_000 });
  const { pass, end: endCall } = await started([
    noting('a', notes),
    noting('b', notes),
    noting('c', notes, { reserve: () => Promise.reject(refusal) }),
  ]);
  const exchange = exchangeOf();
  await assert.rejects(
    pass(exchange, () => notes.push('call')),
    (error) => error === refusal,
  );
  await endCall(exchange, { kind: 'failed' });
  assert.deepEqual(notes, ['a+', 'b+', 'b-', 'a-']);
});

const faults: Record<string, () => string> = {
  throws: () => {
    throw new TypeError('broken');
  },
  'returns no text': () => 5 as unknown as string,
};
for (const [what, reserve] of Object.entries(faults)) {
  test(`a rule that ${what}: refused with 503 and a code, or made without this rule where the setting says so`, async () => {
    const notes: string[] = [];
    const rules = [noting('a', notes), noting('b', notes, { reserve }), noting('c', notes)];
    const { pass, end: endCall } = await started(rules);
    const refused = exchangeOf();
    await assert.rejects(pass(refused), { kind: 'overloaded', code: 'admission_unavailable', retryAfterMs: 1_000 });
    await endCall(refused);
    assert.deepEqual(notes.splice(0), ['a+', 'a-']);
    assert.equal(refused.lines.at(-1)!.message, 'an admission rule failed to reserve');
    const lenient = await started(rules, { broken: 'allow' });
    const exchange = exchangeOf();
    await lenient.pass(exchange);
    await lenient.end(exchange);
    assert.deepEqual(notes, ['a+', 'c+', 'c-', 'a-']);
  });
}

test('when a rule does not reserve in time the call is refused, and its late reservation is released once', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const notes: string[] = [];
  const late = Promise.withResolvers<string>();
  const { pass, end: endCall } = await started(
    [noting('a', notes), noting('b', notes, { reserve: () => late.promise })],
    {
      within: '1s',
    },
  );
  const exchange = exchangeOf();
  const refused = assert.rejects(pass(exchange), { code: 'admission_unavailable' });
  await turn();
  context.mock.timers.tick(1_000);
  await refused;
  assert.deepEqual(notes, ['a+', 'a-']);
  late.resolve('late');
  await turn();
  await endCall(exchange);
  assert.deepEqual(notes, ['a+', 'a-', 'b-']);
});

test('rules that fail to settle, or never do: the others settle, each fault is a line, and the stop alone waits', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] });
  const notes: string[] = [];
  const { instance, pass } = await started([
    noting('a', notes),
    noting('b', notes, { settle: () => new Promise(() => {}) }),
    noting('c', notes, { settle: () => Promise.reject(new Error('broken')) }),
  ]);
  const exchange = exchangeOf();
  await pass(exchange);
  await send(exchange, 1n);
  await exchange.end();
  const stopped = instance.lifecycle!.stop!();
  await turn();
  context.mock.timers.tick(2_000);
  await stopped;
  assert.deepEqual(notes, ['a+', 'b+', 'c+', 'a=']);
  const faulty = exchange.lines.map(({ fields, message }) => [(fields as { rule: string }).rule, message]);
  assert.deepEqual(faulty, [
    ['c', 'an admission rule failed to settle'],
    ['b', 'an admission rule failed to settle'],
  ]);
});

test('calls that run no inference, and gateways without rules, are not entered', async () => {
  const notes: string[] = [];
  const { instance, pass } = await started([noting('a', notes)]);
  const endpoint = { method: 'POST', path: '/v1/chat/completions', operation: 'chat', setsOnOpen: [call] } as const;
  assert.equal(instance.applies!(endpoint), true);
  assert.equal((await started([])).instance.applies!(endpoint), false);
  await pass(exchangeOf({ facts: [[call, { billable: false }]] }));
  assert.deepEqual(notes, []);
});

const outcomes = [
  [{ kind: 'complete' }, 'answered'],
  [{ kind: 'complete', status: 400 }, 'failed'],
  [{ kind: 'client_left', status: 499 }, 'client_left'],
  [{ kind: 'failed' }, 'failed'],
] as const;
for (const [outcome, expected] of outcomes) {
  test(`an exchange that ends ${JSON.stringify(outcome)} is settled as ${expected}`, async () => {
    const seen: AdmissionEnd[] = [];
    const { pass, end: endCall } = await started([
      noting('a', [], { settle: (_reservation, _call, end) => void seen.push(end) }),
    ]);
    const exchange = exchangeOf();
    await pass(exchange);
    await send(exchange, undefined);
    await endCall(exchange, outcome);
    assert.deepEqual(
      seen.map((end) => end.outcome),
      [expected],
    );
  });
}
