/** A region of Bedrock: verifies signatures by itself, reads Converse requests strictly, answers whole or in its binary stream. */
import assert from 'node:assert/strict';
import { createHash, createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { setTimeout as pause } from 'node:timers/promises';
import { crc32 } from 'node:zlib';
import type { Play } from '../../matrix/scenario.ts';
import { type Json, list, object, onlyMembers, pieces, text, toolName } from '../../matrix/vendors/pieces.ts';

export const identity = {
  id: 'AKIDEXAMPLE1234',
  secret: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY',
  session: 'session/token+of==',
};
export const region = 'eu-central-1';
export const model = 'eu.maker.model-v2:0';

export interface BedrockStandIn {
  readonly origin: string;
  readonly bodies: Json[];
  readonly paths: string[];
  readonly problems: unknown[];
  play: Play;
  /** Members of `usage` in place of those of the play. */
  usage: object | undefined;
  fault: { status: number; type: string; message: string } | undefined;
  /** Breaks the stream after the first words, or in place of them (`first `), with this exception or by damage. */
  breaksBy: string | undefined;
  expired: boolean;
  close(): void;
}

export async function startBedrock(play: Play): Promise<BedrockStandIn> {
  const server = createServer(async (request, response) => {
    const body = await buffer(request);
    standIn.paths.push(request.url!);
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
      const match = /^\/model\/([^/]+)\/(converse|converse-stream)$/.exec(request.url!);
      assert.ok(match, String(request.url));
      assert.equal(decodeURIComponent(match[1]!), model);
      const json = object(JSON.parse(body.toString()), 'the body');
      checkRequest(json);
      standIn.bodies.push(json);
      if (match[2] === 'converse') {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.end(JSON.stringify(whole(standIn.play, usageOf())));
        return;
      }
      response.writeHead(200, { 'content-type': 'application/vnd.amazon.eventstream' });
      for (const bytes of stream(standIn.play, usageOf(), standIn.breaksBy)) {
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
      problems: [],
      play,
      usage: undefined,
      fault: undefined,
      breaksBy: undefined,
      expired: false,
    },
    close: () => void server.close(),
  };
  return standIn;

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
function signatureProblem({ method, url, headers }: IncomingMessage, body: Buffer) {
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

// ---------------------------------------------------------------------------------------------------------- the request

function checkRequest(json: Json): void {
  onlyMembers(
    json,
    ['messages', 'system', 'inferenceConfig', 'toolConfig', 'additionalModelRequestFields', 'outputConfig'],
    'the body',
  );
  for (const block of list(json['system'] ?? [], 'system')) onlyMembers(block, ['text', 'cachePoint'], 'system');
  onlyMembers(
    object(json['inferenceConfig'] ?? {}, 'inferenceConfig'),
    ['maxTokens', 'temperature', 'topP', 'stopSequences'],
    'inferenceConfig',
  );
  const tools = checkTools(json['toolConfig']);
  const messages = list(json['messages'], 'messages');
  let open: string[] = [];
  messages.forEach((message, index) => {
    onlyMembers(message, ['role', 'content'], 'a message');
    assert.equal(message['role'], index % 2 === 0 ? 'user' : 'assistant', 'roles take turns');
    const blocks = list(message['content'], 'content');
    assert.ok(blocks.length > 0);
    const results = blocks.flatMap((block) => ('toolResult' in block ? [checkResult(block)] : []));
    assert.deepEqual(results, open, 'each call is answered in the next message');
    open = blocks.flatMap((block) => checkBlock(block, tools));
  });
  assert.equal(messages.at(-1)!['role'], 'user');
}

function checkTools(config: unknown): ReadonlySet<string> {
  if (config === undefined) return new Set();
  const { tools, toolChoice, ...others } = object(config, 'toolConfig');
  assert.deepEqual(others, {});
  if (toolChoice !== undefined)
    assert.match(JSON.stringify(toolChoice), /^\{"(any|auto)":\{\}\}$|^\{"tool":\{"name":"\w+"\}\}$/);
  const names = list(tools, 'tools').map((tool) => {
    onlyMembers(tool, ['toolSpec', 'cachePoint'], 'a tool');
    const spec = object(tool['toolSpec'], 'toolSpec');
    onlyMembers(spec, ['name', 'description', 'inputSchema'], 'toolSpec');
    if (spec['description'] !== undefined) assert.ok(text(spec['description'], 'description').length > 0);
    assert.equal(object(object(spec['inputSchema'], 'inputSchema')['json'], 'json')['type'], 'object');
    assert.match(text(spec['name'], 'name'), toolName);
    return text(spec['name'], 'name');
  });
  assert.ok(names.length > 0);
  return new Set(names);
}

function checkResult({ toolResult }: Json): string {
  const { toolUseId, content, status, ...others } = object(toolResult, 'toolResult');
  assert.deepEqual(others, {});
  assert.ok(status === undefined || status === 'error' || status === 'success');
  for (const block of list(content, 'content')) onlyMembers(block, ['text', 'image', 'document', 'json'], 'a result');
  return text(toolUseId, 'toolUseId');
}

/** The id of a call. */
function checkBlock(block: Json, tools: ReadonlySet<string>): string[] {
  assert.equal(Object.keys(block).length, 1, 'a block is a union');
  onlyMembers(
    block,
    ['text', 'image', 'document', 'toolUse', 'toolResult', 'reasoningContent', 'cachePoint'],
    'a block',
  );
  if ('text' in block) assert.notEqual(text(block['text'], 'text').trim(), '');
  if ('image' in block) {
    const { format, source } = object(block['image'], 'image');
    assert.match(text(format, 'format'), /^(png|jpeg|gif|webp)$/);
    assert.match(text(object(source, 'source')['bytes'], 'bytes'), /^[A-Za-z0-9+/]+=*$/);
  }
  if (!('toolUse' in block)) return [];
  const { toolUseId, name, input, ...others } = object(block['toolUse'], 'toolUse');
  assert.deepEqual(others, {});
  object(input, 'input');
  assert.ok(tools.has(text(name, 'name')), 'calls are of declared tools');
  assert.match(text(toolUseId, 'toolUseId'), /^[a-zA-Z0-9_-]{1,64}$/);
  return [toolUseId as string];
}

// ----------------------------------------------------------------------------------------------------------- the answer

const stops = {
  stop: 'end_turn',
  'stop-sequence': 'stop_sequence',
  'tool-calls': 'tool_use',
  length: 'max_tokens',
  refusal: 'content_filtered',
};

function whole({ reasoning, text: said, calls = [], meaning }: Play, usage: object): object {
  const content = [
    ...(reasoning === undefined ? [] : [{ reasoningContent: { reasoningText: reasoning } }]),
    ...(said === undefined ? [] : [{ text: said }]),
    ...calls.map(({ id, name, input }) => ({ toolUse: { toolUseId: id, name, input } })),
  ];
  const output = { message: { role: 'assistant', content } };
  return { output, stopReason: stops[meaning], usage, metrics: { latencyMs: 400 } };
}

function stream(
  { reasoning, text: said, calls = [], meaning }: Play,
  usage: object,
  breaksBy: string | undefined,
): Buffer[] {
  let index = -1;
  const block = (deltas: object[], start?: object) => {
    index += 1;
    const own = { contentBlockIndex: index };
    return [
      ...(start === undefined ? [] : [event('contentBlockStart', { ...own, start })]),
      ...deltas.map((delta) => event('contentBlockDelta', { ...own, delta, p: 'abcdefg' })),
      event('contentBlockStop', { ...own, p: 'abc' }),
    ];
  };
  const messages = [
    event('messageStart', { role: 'assistant', p: 'ab' }),
    ...(reasoning === undefined
      ? []
      : block([
          ...pieces(reasoning.text).map((piece) => ({ reasoningContent: { text: piece } })),
          { reasoningContent: { signature: reasoning.signature } },
        ])),
    ...(said === undefined ? [] : block(pieces(said).map((piece) => ({ text: piece })))),
    ...calls.flatMap(({ id, name, input }) =>
      block(
        pieces(JSON.stringify(input)).map((piece) => ({ toolUse: { input: piece } })),
        { toolUse: { toolUseId: id, name } },
      ),
    ),
    event('messageStop', { stopReason: stops[meaning] }),
    event('metadata', { usage, metrics: { latencyMs: 400 } }),
  ];
  if (breaksBy === undefined) return [Buffer.concat(messages)];
  const broken =
    breaksBy === 'damage'
      ? Buffer.from(messages[2]!.map((byte, at) => (at === 40 ? byte ^ 1 : byte)))
      : message(
          {
            ':message-type': 'exception',
            ':exception-type': breaksBy.replace('first ', ''),
            ':content-type': 'application/json',
          },
          { message: 'It broke.' },
        );
  return breaksBy.startsWith('first ') ? [broken] : [Buffer.concat(messages.slice(0, 2)), broken];
}

function event(type: string, body: object): Buffer {
  return message({ ':event-type': type, ':content-type': 'application/json', ':message-type': 'event' }, body);
}

/** Length, length of headers, checksum of both; headers; body; checksum of it all. */
function message(headers: Record<string, string>, body: object): Buffer {
  const head = Buffer.concat(
    Object.entries(headers).map(([name, value]) => {
      const length = Buffer.alloc(2);
      length.writeUInt16BE(Buffer.byteLength(value));
      return Buffer.concat([
        Buffer.from([name.length]),
        Buffer.from(name),
        Buffer.from([7]),
        length,
        Buffer.from(value),
      ]);
    }),
  );
  const data = Buffer.from(JSON.stringify(body));
  const prelude = Buffer.alloc(12);
  prelude.writeUInt32BE(16 + head.length + data.length, 0);
  prelude.writeUInt32BE(head.length, 4);
  prelude.writeUInt32BE(crc32(prelude.subarray(0, 8)), 8);
  const whole = Buffer.concat([prelude, head, data]);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(whole));
  return Buffer.concat([whole, sum]);
}
