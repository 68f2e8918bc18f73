/** What only real sockets show: encodings, headers, lost connections, upgrades. */
import assert from 'node:assert/strict';
import { request } from 'node:http';
import { after, before, test } from 'node:test';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { clients } from '../matrix/clients/index.ts';
import { post } from '../matrix/post.ts';
import { protocolNames } from '../matrix/scenario.ts';
import { type MatrixStage, modelOf, startMatrixStage } from '../matrix/stage.ts';
import { vendors } from '../matrix/vendors/index.ts';
import { hello, nameOf, pairs, streamOf } from './relayed.ts';

let stage: MatrixStage;
before(async () => {
  stage = await startMatrixStage();
});
after(() => stage.stop());

const clientRequest = { turns: [{ by: 'user', parts: [{ kind: 'text', text: 'Hello?' }] }] } as const;

test('pitfall 017: an encoded stream is decoded and said to be plain; two encodings on one another are an error', async () => {
  for (const { client, vendor } of pairs) {
    const wording = clients[client].word(clientRequest, { model: modelOf(vendor), isStream: true });
    const head = { 'content-type': 'text/event-stream' };
    const stream = streamOf(vendor);
    stage.vendors[vendor].play({ headers: { ...head, 'content-encoding': 'gzip' }, body: gzipSync(stream) });
    const reply = await post(stage.origin, wording);
    assert.equal(clients[client].readStream(reply.body).text, hello.text, nameOf({ client, vendor }));
    const twice = brotliCompressSync(gzipSync(stream));
    stage.vendors[vendor].play({ headers: { ...head, 'content-encoding': 'gzip, br' }, body: twice });
    const broken = await post(stage.origin, wording);
    assert.equal(broken.status, 502, nameOf({ client, vendor }));
    assert.notEqual(clients[client].readError(broken.body).message, '');
  }
});

test('a vendor’s bomb in mid-stream ends the answer with an error, and the gateway holds little of it', async () => {
  const packers = { gzip: gzipSync, br: brotliCompressSync };
  for (const encoding of ['gzip', 'br'] as const) {
    for (const { client, vendor } of pairs.slice(0, 6)) {
      const stream = streamOf(vendor);
      const bomb = Buffer.concat([
        Buffer.from(stream.slice(0, stream.length / 2)),
        Buffer.from('\n\n'),
        Buffer.alloc(4 * 2 ** 20, ': \n\n'),
      ]);
      const headers = { 'content-type': 'text/event-stream', 'content-encoding': encoding };
      stage.vendors[vendor].play({ headers, body: packers[encoding](bomb), hang: true });
      const wording = clients[client].word(clientRequest, { model: modelOf(vendor), isStream: true });
      const reply = await post(stage.origin, wording);
      assert.ok(reply.body.length < 3 * 2 ** 20, `${nameOf({ client, vendor })}: ${reply.body.length} bytes`);
      await stage.vendors[vendor].requests.at(-1)!.closed;
    }
  }
});

test('pitfall 025: of a client’s headers none reaches an upstream of another protocol', async () => {
  const sent = {
    authorization: 'Bearer client-secret',
    'x-api-key': 'client-secret',
    'x-goog-api-key': 'client-secret',
    cookie: 'session=client-secret',
    'x-forwarded-for': '10.0.0.1',
    'x-stainless-lang': 'js',
    'anthropic-beta': 'context-1m',
    te: 'trailers',
  };
  for (const { client, vendor } of pairs) {
    const wording = clients[client].word(clientRequest, { model: modelOf(vendor), isStream: true });
    stage.vendors[vendor].play({ headers: { 'content-type': 'text/event-stream' }, body: streamOf(vendor) });
    await post(stage.origin, { ...wording, headers: { ...wording.headers, ...sent } });
    const { headers } = stage.vendors[vendor].requests.at(-1)!;
    const where = nameOf({ client, vendor });
    assert.ok(!JSON.stringify(headers).includes('client-secret'), where);
    for (const name of ['cookie', 'x-forwarded-for', 'x-stainless-lang', 'anthropic-beta', 'te'])
      assert.equal(headers[name], undefined, `${where}: ${name}`);
    assert.equal(headers.host, new URL(stage.vendors[vendor].origin).host, where);
  }
});

test('pitfall 024: a connection that is lost after the request was sent: asked once more at most', async () => {
  for (const { client, vendor } of pairs) {
    const wording = clients[client].word(clientRequest, { model: modelOf(vendor), isStream: true });
    const { requests } = stage.vendors[vendor];
    const count = requests.length;
    stage.vendors[vendor].play({ dieAtOnce: true });
    const reply = await post(stage.origin, wording);
    assert.equal(reply.status, 502, nameOf({ client, vendor }));
    const tries = requests.length - count;
    assert.ok(tries >= 1 && tries <= 2, nameOf({ client, vendor }));
  }
});

test('pitfall 204: a WebSocket is refused with 426 at once', async () => {
  for (const path of [
    '/v1/responses',
    ...protocolNames.map((name) => clients[name].word(clientRequest, { model: 'm', isStream: false }).path),
  ]) {
    const status = await new Promise<number>((resolve, reject) => {
      const upgrade = request(`${stage.origin}${path}`, {
        headers: {
          connection: 'upgrade',
          upgrade: 'websocket',
          'sec-websocket-version': '13',
          'sec-websocket-key': 'eA==',
        },
      });
      upgrade.on('response', (answer) => resolve(answer.resume().statusCode!));
      upgrade.on('error', reject);
      upgrade.end();
    });
    assert.equal(status, 426, path);
  }
});

test('pitfall 225: an overloaded upstream is an overload to every client, and its waiting time is passed on', async () => {
  const { status, body } = vendors.messages.fault('overloaded');
  const types = {
    chat: 'server_error',
    responses: 'server_error',
    messages: 'overloaded_error',
    gemini: 'UNAVAILABLE',
  };
  for (const client of protocolNames) {
    // Last of all: the key rests from here on.
    stage.vendors.messages.play({ status, headers: { 'content-type': 'application/json', 'retry-after': '7' }, body });
    const reply = await post(
      stage.origin,
      clients[client].word(clientRequest, { model: modelOf('messages'), isStream: true }),
    );
    const { type } = clients[client].readError(reply.body);
    assert.deepEqual([reply.status, type], [503, types[client]], client);
    assert.ok(reply.retryAfter !== undefined && Number(reply.retryAfter) <= 7, client);
  }
});
