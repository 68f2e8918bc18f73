/** Random sessions: whatever is said, cancelled, left or cut, the ledger has what the vendor billed, each response once. */
import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { cost } from '../../plugins/common/domain/money.ts';
import { runsOf } from '../helpers/histories.ts';
import { fc } from '../helpers/properties.ts';
import { type Talk, talk } from './sockets.ts';
import { startTestbed, type Testbed, until } from './testbed.ts';

const price = { input: 4, cache_read: 0.4, input_audio: 32, cache_read_audio: 0.5, output: 16, output_audio: 64 };
const inNano = Object.fromEntries(Object.entries(price).map(([name, usd]) => [name, BigInt(usd * 1e9)]));

let testbed: Testbed;
before(async () => {
  testbed = await startTestbed({
    providers: ({ sandbox }) => ({
      voice: { keys: 'vendor-key-of-the-sandbox', speaks: { 'openai-realtime': `${sandbox}/v1` } },
    }),
    models: { voice: { owned_by: 'test', kind: 'realtime', targets: ['voice'], context: '32k', price } },
  });
});
after(() => testbed.stop());

const turn = fc.record({
  tokens: fc.integer({ min: 1, max: 60 }),
  speaks: fc.boolean(),
  hears: fc.boolean(),
  /** Milliseconds after which it is cancelled. */
  cancelled: fc.option(fc.integer({ min: 0, max: 40 })),
});
const session = fc.record({
  turns: fc.array(turn, { minLength: 1, maxLength: 4 }),
  /** What happens in the midst of a last turn; null: the session is closed when it is quiet. */
  end: fc.constantFrom('leave', 'cut', null),
});

async function talkThrough(client: Talk, { turns, end }: typeof session extends fc.Arbitrary<infer T> ? T : never) {
  const done = () => client.messages.filter(({ type }) => type === 'response.done').length;
  client.send({ type: 'session.update', session: { audio: { input: { turn_detection: null } } } });
  const send = (text: string, speaks: boolean) => {
    const item = { type: 'message', role: 'user', content: [{ type: 'input_text', text }] };
    client.send({ type: 'conversation.item.create', item });
    client.send({ type: 'response.create', response: { output_modalities: [speaks ? 'audio' : 'text'] } });
  };
  for (const [index, { tokens, speaks, hears, cancelled }] of turns.entries()) {
    if (hears) {
      client.send({ type: 'input_audio_buffer.append', audio: Buffer.alloc(9_600).toString('base64') });
      client.send({ type: 'input_audio_buffer.commit' });
    }
    send(`Say [[sandbox: tokens=${tokens} chunk_delay=1ms]]`, speaks);
    if (cancelled !== null) {
      await pause(cancelled);
      client.send({ type: 'response.cancel' });
    }
    await until('the turn has ended', () => done() > index);
  }
  if (end === null) return client.close();
  send(`Say [[sandbox: tokens=40 chunk_delay=5ms${end === 'cut' ? ' cut_after=4' : ''}]]`, false);
  if (end === 'leave') {
    await until('it has begun', () => client.messages.at(-1).type === 'response.output_text.delta');
    client.socket.terminate();
  }
  await client.closed;
}

test("the ledger agrees with the vendor's bill", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(session, { minLength: 1, maxLength: 3 }), async (sessions) => {
      testbed.sandbox.resetBill();
      const customer = await testbed.customer();
      const before = await testbed.balance(customer);
      await Promise.all(
        sessions.map(async (one) =>
          talkThrough(await talk(testbed.origin, customer.key, '/v1/realtime?model=voice'), one),
        ),
      );
      const responses = sessions.flatMap(({ turns, end }) => [...turns, ...(end === null ? [] : [end])]).length;
      const { charges } = await testbed.records(customer, responses + sessions.length);
      const exact = charges.filter(({ estimated }) => !estimated);
      const cut = sessions.filter(({ end }) => end === 'cut').length;
      assert.equal(charges.length - exact.length, cut);
      const text = (usage: object) =>
        JSON.stringify(
          Object.entries(usage)
            .filter(([, count]) => count > 0)
            .sort(),
        );
      const billed = testbed.sandbox.bill().recent.filter(({ outcome }) => outcome === 'complete');
      assert.deepEqual(exact.map(({ classes }) => text(classes)).sort(), billed.map(({ usage }) => text(usage)).sort());
      for (const { classes, cost: paid } of charges) assert.equal(paid, cost(classes, inNano));
      const paid = charges.reduce((sum, row) => sum + row.cost, 0n);
      assert.equal(await testbed.balance(customer), before - paid);
      await testbed.audit();
    }),
    { numRuns: runsOf(4, 100), endOnFailure: true },
  );
});
