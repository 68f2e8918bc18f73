/** A whole answer where a stream was asked for, and a stream where a whole one was, are read by what came: the client gets what it asked for. */
import assert from 'node:assert/strict';
import { test } from 'node:test';
import type { Answer } from '../../core/contract/message.ts';
import { type UsageReport, usageReport } from '../../plugins/common/domain/calls.ts';
import { clients } from '../matrix/clients/index.ts';
import { type ClientRequest, type Play, type ProtocolName, protocolNames } from '../matrix/scenario.ts';
import { vendors } from '../matrix/vendors/index.ts';
import { readBody, relay, Source } from '../plugins/protocol-convert/harness.ts';
import { streamOf, usage } from './relayed.ts';

const tools = [{ name: 'read', description: 'Reads.', schema: { type: 'object', properties: {} } }];
const clientRequest: ClientRequest = { turns: [{ by: 'user', parts: [{ kind: 'text', text: 'Hello?' }] }], tools };
const calling: Play = {
  text: 'Grüß Gott!',
  calls: [{ id: 'call_0123456789abcdef', name: 'read', input: { path: 'a' } }],
  meaning: 'tool-calls',
  usage,
};

function body(text: string, type: string, isPulled: boolean): Answer {
  const half = Math.floor(text.length / 2);
  const chunks = [text.slice(0, half), text.slice(half)];
  return { status: 200, headers: { 'content-type': type }, body: isPulled ? new Source(chunks) : Buffer.from(text) };
}

async function answered(client: ProtocolName, vendor: ProtocolName, isStream: boolean, upstream: Answer, traits = {}) {
  const request = clients[client].word(clientRequest, { model: 'model', isStream });
  const { answer, exchange } = await relay({ ...request, target: { protocol: vendor, traits } }, upstream);
  const text = (await readBody(answer.body)).toString();
  const seen = isStream ? clients[client].readStream(text) : clients[client].readWhole(text);
  return { seen, text, type: answer.headers['content-type'], report: exchange.get(usageReport), exchange };
}

const counted = [usage.input, usage.output];
const countsOf = ({ usage: { input, output } }: UsageReport) => [input, output];
const json = 'application/json; charset=utf-8';
const sse = 'text/event-stream';
const odd: readonly (readonly [isStream: boolean, type: string])[] = [
  [true, json],
  [true, sse],
  [false, sse],
  [false, json],
];
for (const client of protocolNames)
  for (const vendor of protocolNames) {
    test(`an answer in the other form reaches the client in the form that it asked for (${vendor} upstream, ${client} client)`, async () => {
      for (const [isStream, type] of odd)
        for (const isPulled of [true, false]) {
          const came = isStream ? vendors[vendor].whole(calling, 'model') : streamOf(vendor, calling);
          const { seen, report, exchange, ...reported } = await answered(
            client,
            vendor,
            isStream,
            body(came, type, isPulled),
          );
          const name = `${isStream ? 'a document' : 'a stream'} as ${type}`;
          assert.equal(seen.error, undefined, name);
          assert.equal(seen.text, calling.text, name);
          assert.deepEqual(
            seen.calls.map((call) => [call.name, call.input]),
            [['read', { path: 'a' }]],
            name,
          );
          assert.deepEqual(seen.meanings, ['tool-calls'], name);
          assert.ok(reported.type?.startsWith(isStream ? sse : 'application/json'), `${name}: ${reported.type}`);
          assert.deepEqual(countsOf(report), counted, name);
          assert.ok(report.terminal && !report.estimated, name);
          assert.equal(exchange.failure, undefined, name);
        }
    });
  }

test('an answer in the other form keeps the vendor’s ids of calls for a client of its own protocol', async () => {
  for (const name of ['chat', 'responses', 'messages'] as const)
    for (const isStream of [true, false]) {
      const came = isStream ? vendors[name].whole(calling, 'model') : streamOf(name, calling);
      const { text } = await answered(name, name, isStream, body(came, isStream ? json : sse, true));
      assert.match(text, /"call_0123456789abcdef"/, name);
    }
});

test('where the vendor is known for one form, an answer in the other is read too', async () => {
  for (const client of protocolNames)
    for (const vendor of protocolNames) {
      const streams = await answered(client, vendor, true, body(streamOf(vendor, calling), sse, true), {
        streams: 'never',
      });
      assert.equal(streams.seen.text, calling.text, `${vendor} streams to ${client}`);
      const whole = body(vendors[vendor].whole(calling, 'model'), json, true);
      const once = await answered(client, vendor, false, whole, { streams: 'only' });
      assert.equal(once.seen.text, calling.text, `${vendor} answers ${client} whole`);
      assert.deepEqual(countsOf(once.report), counted);
    }
});

test('a whole answer that is labelled as a stream passes byte for byte to a client that asked for it', async () => {
  for (const name of protocolNames) {
    const came = vendors[name].whole(calling, 'model');
    assert.equal((await answered(name, name, false, body(came, sse, true))).text, came, name);
  }
});

test('a stream that breaks is an error for a client that asked for a whole answer', async () => {
  for (const client of protocolNames)
    for (const vendor of protocolNames) {
      const came = streamOf(vendor, calling);
      const cut = { status: 200, headers: { 'content-type': sse }, body: new Source([came.slice(0, 300)]) };
      await assert.rejects(answered(client, vendor, false, cut), `${vendor} to ${client}`);
    }
});
