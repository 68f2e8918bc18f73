/** Answers that break, and answers in another form than the client's, between every two protocols. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { UpstreamRefusal } from '../../core/contract/upstream-failures.ts';
import { clients } from '../matrix/clients/index.ts';
import { vendors } from '../matrix/vendors/index.ts';
import { relay, wholeAnswer } from '../plugins/protocol-convert/harness.ts';
import { hello, nameOf, pairs, Source, streamed, streamOf, whole } from './relayed.ts';

/** Up to the first words, and no further. */
function beginningOf(vendor: (typeof pairs)[number]['vendor']): string[] {
  const frames = vendors[vendor].stream(hello, 'model');
  return frames.slice(0, frames.findIndex((frame) => frame.includes('Grüß')) + 1);
}

test('pitfall 014: a stream that closes without its end is reported as broken, never as stopped', async () => {
  for (const pair of pairs) {
    for (const end of [undefined, new Error('reset')]) {
      const seen = await streamed(pair, beginningOf(pair.vendor), end === undefined ? {} : { end });
      assert.ok(seen.error !== undefined && seen.error.message !== '', nameOf(pair));
      assert.ok(hello.text!.startsWith(seen.text) && seen.text !== '', nameOf(pair));
    }
  }
});

test('pitfall 018: a page instead of an answer is an error of the upstream', async () => {
  for (const { client, vendor } of pairs) {
    for (const isStream of [false, true]) {
      const { path, headers, body } = clients[client].word({ turns: [] }, { model: 'model', isStream });
      const page = wholeAnswer('<html><body>Just a moment…</body></html>', 200, { 'content-type': 'text/html' });
      await assert.rejects(
        relay({ path, headers, body: withTurn(client, body), target: { protocol: vendor } }, page),
        (error) => error instanceof UpstreamRefusal && error.status === 502,
      );
    }
  }
});

/** The client's shortest request. */
function withTurn(client: (typeof pairs)[number]['client'], body: string): string {
  const request = { turns: [{ by: 'user', parts: [{ kind: 'text', text: 'Hello?' }] }] } as const;
  const isStream = body.includes('"stream":true');
  return clients[client].word(request, { model: 'model', isStream }).body;
}

test('pitfall 019: an error in the first frame of a 200 is an error with a status', async () => {
  for (const pair of pairs) {
    const frames = vendors[pair.vendor].faultFrames(0);
    await assert.rejects(
      streamed(pair, frames),
      (error) => error instanceof UpstreamRefusal && error.status >= 500,
      nameOf(pair),
    );
  }
});

test('pitfall 020: an error in a later chunk ends the stream in the client’s words, without a reason to stop', async () => {
  for (const pair of pairs) {
    const frames = beginningOf(pair.vendor);
    const seen = await streamed(pair, [...frames, ...vendors[pair.vendor].faultFrames(frames.length)]);
    assert.ok(seen.error, nameOf(pair));
    assert.deepEqual(seen.meanings, [], nameOf(pair));
  }
});

test('pitfall 021: an overload after the first words is reported as an overload', async () => {
  const types = { chat: 'server_error', responses: 'error', messages: 'overloaded_error', gemini: 'UNAVAILABLE' };
  for (const { client } of pairs.filter(({ vendor }) => vendor === 'messages')) {
    const frames = beginningOf('messages');
    const seen = await streamed({ client, vendor: 'messages' }, [...frames, ...vendors.messages.faultFrames(0)]);
    assert.equal(seen.error?.type, types[client], client);
  }
});

test('pitfall 023: a client that disconnects ends the request to the upstream', async () => {
  for (const { client, vendor } of pairs) {
    const source = new Source(beginningOf(vendor), 'hang');
    const { path, headers, body } = clients[client].word(
      { turns: [{ by: 'user', parts: [{ kind: 'text', text: 'Hello?' }] }] },
      { model: 'model', isStream: true },
    );
    const upstream = { status: 200, headers: { 'content-type': 'text/event-stream' }, body: source };
    const { answer } = await relay({ path, headers, body, target: { protocol: vendor } }, upstream);
    const iterator = (answer.body as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]();
    await iterator.next();
    await iterator.return?.();
    assert.ok(source.returned, `${client} ${vendor}`);
  }
});

test('pitfall 026: an upstream that only streams serves whole answers, one that never does serves streams', async () => {
  for (const pair of pairs) {
    const gathered = await whole(pair, streamOf(pair.vendor), { traits: { streams: 'only' } });
    assert.equal(gathered.text, hello.text, nameOf(pair));
    const body = vendors[pair.vendor].whole(hello, 'model');
    const unfolded = await streamed(pair, body, { traits: { streams: 'never' } });
    assert.equal(unfolded.text, hello.text, nameOf(pair));
  }
});
