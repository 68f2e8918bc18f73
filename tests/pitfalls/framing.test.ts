/** Odd frames and ends of streams, between every two protocols. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import { protocolNames } from '../matrix/scenario.ts';
import { bytesOf, hello, nameOf, pairs, streamed, streamOf, usage } from './relayed.ts';

/** The same words, whatever was done to the vendor's bytes. */
async function readsHello(change: (stream: string) => string | readonly (Uint8Array | string)[]): Promise<void> {
  for (const pair of pairs) {
    const seen = await streamed(pair, change(streamOf(pair.vendor)));
    assert.equal(seen.text, hello.text, nameOf(pair));
    assert.ok(seen.meanings.includes('stop'), nameOf(pair));
    assert.equal(seen.usage?.output, usage.output, nameOf(pair));
  }
}

test('pitfall 001: a character that is cut in two arrives whole', () =>
  readsHello((stream) => [...Buffer.from(stream)].map((byte) => Buffer.from([byte]))));

test('pitfall 002: any line ends are line ends, also when a chunk ends between CR and LF', async () => {
  await readsHello((stream) => stream.replaceAll(/\r?\n/g, '\r\n').split(/(?<=\r)/));
  await readsHello((stream) => stream.replaceAll(/\r?\n/g, '\r'));
  await readsHello((stream) => {
    let count = 0;
    return stream.replaceAll(/\r?\n/g, () => ['\n', '\r\n', '\r', '\r\n'][count++ % 4]!);
  });
});

test('pitfall 003: comments between events are ignored', () =>
  readsHello((stream) => `: PROCESSING\n\n${stream.replaceAll(/(\r?\n){2}/g, '$&: ping {"a":\n\n')}`));

test('pitfall 004: the space behind the colon may be missing', () =>
  readsHello((stream) => stream.replaceAll(/^(data|event): /gm, '$1:')));

test('pitfall 005: several data lines of one event are one payload', () =>
  readsHello((stream) => stream.replaceAll(/^(data: \{)("\w+")/gm, '$1\ndata: $2')));

test('pitfall 006: an event whose blank line never comes counts, and every stream to a client ends with one', async () => {
  await readsHello((stream) => stream.trimEnd());
  for (const pair of pairs) {
    const bytes = await bytesOf(pair, [streamOf(pair.vendor).trimEnd()]);
    assert.match(bytes.toString(), /\n\r?\n$/, nameOf(pair));
  }
});

test('pitfall 007: one event of several megabytes is an event', async () => {
  const text = 'x'.repeat(5_000_000);
  for (const pair of pairs.filter(({ client }) => client === 'chat' || client === 'messages')) {
    const stream = streamOf(pair.vendor, { ...hello, text });
    const seen = await streamed(pair, stream.match(/[\s\S]{1,1000000}/g)!);
    assert.equal(seen.text.length, text.length, nameOf(pair));
  }
});

test('pitfall 008: U+2028, U+2029 and vertical tabs end no line', async () => {
  const text = 'one\u2028two\u2029three\u0085four\u000bfive';
  for (const pair of pairs) {
    const stream = streamOf(pair.vendor, { ...hello, text });
    assert.equal((await streamed(pair, stream)).text, text, nameOf(pair));
  }
});

test('pitfall 009: the answer ends with its terminal event although the socket stays open', {
  timeout: 5_000,
}, async () => {
  for (const pair of pairs.filter(({ vendor }) => vendor !== 'gemini')) {
    const seen = await streamed(pair, [streamOf(pair.vendor)], { end: 'hang' });
    assert.equal(seen.text, hello.text, nameOf(pair));
  }
});

test('pitfall 010: a messages stream that has reported its reason and then only pings is ended for it', {
  timeout: 5_000,
}, async () => {
  const ping = 'event: ping\ndata: {"type": "ping"}\n\n';
  const endless = [streamOf('messages').replace(/event: message_stop[\s\S]*$/, ''), ping, ping, ping];
  for (const client of protocolNames) {
    const seen = await streamed({ client, vendor: 'messages' }, endless, { end: 'hang' });
    assert.equal(seen.text, hello.text, client);
    assert.ok(seen.meanings.includes('stop'), client);
  }
  // One ping may stand before the end.
  const late = streamOf('messages').replace('event: message_stop', `${ping}$&`);
  const bytes = await bytesOf({ client: 'messages', vendor: 'messages' }, [late]);
  assert.equal(bytes.toString(), late);
});

test('pitfall 011: a chat stream that closes after its finish reason has ended, and chat clients get their [DONE]', async () => {
  for (const client of protocolNames.filter((name) => name !== 'chat')) {
    const seen = await streamed({ client, vendor: 'chat' }, streamOf('chat').replace('data: [DONE]\n\n', ''));
    assert.ok(seen.meanings.includes('stop'), client);
  }
  for (const vendor of protocolNames.filter((name) => name !== 'chat')) {
    const bytes = await bytesOf({ client: 'chat', vendor }, [streamOf(vendor)]);
    assert.match(bytes.toString(), /data: \[DONE\]\n\n$/, vendor);
  }
});

test('pitfall 012: frames after [DONE] are ignored', async () => {
  const late =
    'data: {"id":"x","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"late"}}]}\n\n';
  for (const client of protocolNames.filter((name) => name !== 'chat')) {
    const seen = await streamed({ client, vendor: 'chat' }, streamOf('chat') + late);
    assert.equal(seen.text, hello.text, client);
  }
});

test('pitfall 013: [DONE] without a finish reason closes open blocks and ends the answer', async () => {
  for (const client of protocolNames.filter((name) => name !== 'chat')) {
    const stream = streamOf('chat').replace('"finish_reason":"stop"', '"finish_reason":null');
    const seen = await streamed({ client, vendor: 'chat' }, stream);
    assert.equal(seen.text, hello.text, client);
    assert.ok(seen.meanings.includes('stop'), client);
  }
});

test('pitfall 015: events without a name are known by their type, and clients get every name', async () => {
  for (const vendor of ['messages', 'responses'] as const) {
    for (const { client } of pairs.filter((pair) => pair.vendor === vendor)) {
      const seen = await streamed({ client, vendor }, streamOf(vendor).replaceAll(/^event: .*\n/gm, ''));
      assert.equal(seen.text, hello.text, `${vendor} ${client}`);
    }
  }
});

test('pitfall 016: a keepalive event between two others is nothing to any client', async () => {
  const keepalive = 'event: keepalive\ndata: {"type":"keepalive","sequence_number":2}\n\n';
  for (const { client } of pairs.filter(({ vendor }) => vendor === 'responses')) {
    const stream = streamOf('responses').replaceAll('event: response.output_text.delta', `${keepalive}$&`);
    const seen = await streamed({ client, vendor: 'responses' }, stream);
    assert.equal(seen.text, hello.text, client);
  }
});

test('pitfall 022: pings are skipped and never become an empty text', async () => {
  const ping = 'event: ping\ndata: {"type": "ping"}\n\n';
  for (const { client } of pairs.filter(({ vendor }) => vendor === 'messages')) {
    const plain = await bytesOf({ client, vendor: 'messages' }, [streamOf('messages')]);
    const pinged = await bytesOf({ client, vendor: 'messages' }, [
      streamOf('messages').replaceAll('event: content_block_delta', `${ping}$&`),
    ]);
    assert.equal(pinged.toString(), plain.toString(), client);
  }
});
