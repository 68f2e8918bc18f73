/** A region of Bedrock: verifies signatures by itself, reads requests strictly, answers whole or in its binary stream. */
import assert from 'node:assert/strict';
import { createHash, createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import type { Play } from '../../matrix/scenario.ts';
import { type Json, object } from '../../matrix/vendors/pieces.ts';
import { checkRequest, events, whole } from './converse-format.ts';
import { event, message } from './event-messages.ts';
import { type InvokeAnswer, invoked } from './invoke-formats.ts';

export const identity = {
  id: 'AKIDEXAMPLE1234',
  secret: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  session: 'session/token+of==',
};
export const region = 'eu-central-1';
export const model = 'eu.maker.model-v2:0';
/** The plugins of a gateway that calls Bedrock. */
export const plugins = [
  ...['storage', 'request-log', 'auth', 'plans', 'aws', 'bedrock', 'providers', 'models', 'billing', 'route'],
  'protocol-convert',
];

export interface BedrockStandIn {
  readonly origin: string;
  readonly bodies: Json[];
  readonly paths: string[];
  readonly headers: IncomingMessage['headers'][];
  readonly problems: unknown[];
  play: Play;
  /** Members of `usage` instead of those of the play. */
  usage: object | undefined;
  fault: { status: number; type: string; message: string } | undefined;
  /** Breaks the stream after the first words, or instead of them (`first `), with this exception or by damage. */
  breaksBy: string | undefined;
  expired: boolean;
  /** InvokeModel says what was used, in headers and metrics. */
  counts: boolean;
  close(): void;
}

export async function startBedrock(play: Play): Promise<BedrockStandIn> {
  const server = createServer(async (request, response) => {
    const body = await buffer(request);
    standIn.paths.push(request.url!);
    standIn.headers.push(request.headers);
    try {
      const refusal = standIn.expired
        ? {
            status: 403,
            type: 'ExpiredTokenException',
            message: 'The security token included in the request is expired',
          }
        : signatureProblem(request, body);
      const fault = refusal ?? standIn.fault;
      if (fault !== undefined) {
        response.writeHead(fault.status, {
          'content-type': 'application/json',
          'x-amzn-errortype': `${fault.type}:http://internal.amazon.com/coral/com.amazon.bedrock/`,
        });
        response.end(JSON.stringify({ message: fault.message }));
        return;
      }
      const match = /^\/model\/([^/]+)\/(converse|converse-stream|invoke|invoke-with-response-stream)$/.exec(
        request.url!,
      );
      assert.ok(match, String(request.url));
      const [name, verb] = [decodeURIComponent(match[1]!), match[2]!];
      const json = object(JSON.parse(body.toString()), 'the body');
      standIn.bodies.push(json);
      const isInvoke = verb.startsWith('invoke');
      const answer = isInvoke ? invoked(name, request.headers, json, standIn) : converse(name, json);
      if (!verb.endsWith('stream')) {
        response.writeHead(200, { 'content-type': 'application/json', ...(standIn.counts ? answer.headers : {}) });
        response.end(answer.whole());
        return;
      }
      response.writeHead(200, { 'content-type': 'application/vnd.amazon.eventstream' });
      for (const bytes of broken(answer.messages(), standIn.breaksBy)) {
        // In pieces that fit no message.
        for (let at = 0; at < bytes.length; at += 37) response.write(bytes.subarray(at, at + 37));
        await pause(30);
      }
      response.end();
    } catch (error) {
      standIn.problems.push(error);
      response.writeHead(400, { 'content-type': 'application/json' }).end(JSON.stringify({ message: String(error) }));
    }
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  const standIn: BedrockStandIn = {
    origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    ...{
      bodies: [],
      paths: [],
      headers: [],
      problems: [],
      play,
      usage: undefined,
      fault: undefined,
      breaksBy: undefined,
      expired: false,
      counts: true,
    },
    close: () => void server.close(),
  };
  return standIn;

  function converse(name: string, json: Json): InvokeAnswer {
    assert.equal(name, model);
    checkRequest(json);
    return {
      whole: () => JSON.stringify(whole(standIn.play, usageOf())),
      messages: () => events(standIn.play, usageOf()).map(([type, body]) => event(type, body)),
    };
  }

  function usageOf(): object {
    const { input, output, cacheRead, cacheWrite } = standIn.play.usage;
    return (
      standIn.usage ?? {
        inputTokens: input - cacheRead - cacheWrite,
        outputTokens: output,
        totalTokens: input + output,
        cacheReadInputTokens: cacheRead,
        cacheWriteInputTokens: cacheWrite,
      }
    );
  }
}

// ------------------------------------------------------------------------------------------------------- the signature

const sha256 = (data: string | Uint8Array) => createHash('sha256').update(data).digest('hex');
const hmac = (key: string | Uint8Array, data: string) => createHmac('sha256', key).update(data).digest();

/** Signature version 4 as its specification describes it. */
/** undefined: the request is signed as it must be. */
export function signatureProblem(
  { method, url, headers }: Pick<IncomingMessage, 'method' | 'url' | 'headers'>,
  body: Buffer,
) {
  const refuse = (message: string) => ({ status: 403, type: 'InvalidSignatureException', message });
  const pattern =
    /^AWS4-HMAC-SHA256 Credential=(\w+)\/(\d{8})\/([a-z0-9-]+)\/([a-z0-9-]+)\/aws4_request, SignedHeaders=([a-z0-9;-]+), Signature=([0-9a-f]{64})$/;
  const match = pattern.exec(headers.authorization ?? '');
  if (match === null) return refuse('Missing Authentication Token');
  const [, id, day, signedRegion, service, names, signature] = match as unknown as string[];
  const date = String(headers['x-amz-date']);
  const at = Date.parse(date.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z'));
  if (!(Math.abs(Date.now() - at) < 300_000) || !date.startsWith(day!)) return refuse('Signature expired');
  if (id !== identity.id) return { ...refuse(`no such key ${id}`), type: 'UnrecognizedClientException' };
  const signed = names!.split(';');
  const needed = ['content-type', 'host', 'x-amz-content-sha256', 'x-amz-date', 'x-amz-security-token'];
  if (signed.join() !== needed.join() || headers['x-amz-security-token'] !== identity.session)
    return refuse(`signed are ${names}`);
  if (signedRegion !== region || service !== 'bedrock') return refuse('Credential should be scoped to a valid region.');
  const payload = sha256(body);
  const path = url!.split('/').map(encodeURIComponent).join('/');
  const lines = signed.map((name) => `${name}:${String(headers[name]).trim()}\n`).join('');
  const canonical = [method, path, '', lines, names, payload].join('\n');
  const scope = `${day}/${region}/bedrock/aws4_request`;
  let key = hmac(`AWS4${identity.secret}`, day!);
  for (const part of [region, 'bedrock', 'aws4_request']) key = hmac(key, part);
  const expected = hmac(key, ['AWS4-HMAC-SHA256', date, scope, sha256(canonical)].join('\n')).toString('hex');
  return expected === signature && headers['x-amz-content-sha256'] === payload
    ? undefined
    : refuse(`The request signature we calculated does not match; the Canonical String was ${canonical}`);
}

// ------------------------------------------------------------------------------------------------------ broken streams

/** Broken after the first two messages or instead of the first, by damage or an exception; undefined: not at all. */
function broken(messages: readonly Buffer[], breaksBy: string | undefined): Buffer[] {
  if (breaksBy === undefined) return [Buffer.concat(messages)];
  const last =
    breaksBy === 'damage'
      ? Buffer.from(messages[4]!.map((byte, at) => (at === 40 ? byte ^ 1 : byte)))
      : message(
          {
            ':message-type': 'exception',
            ':exception-type': breaksBy.replace('first ', ''),
            ':content-type': 'application/json',
          },
          { message: 'It broke.' },
        );
  return breaksBy.startsWith('first ') ? [last] : [Buffer.concat(messages.slice(0, 4)), last];
}
