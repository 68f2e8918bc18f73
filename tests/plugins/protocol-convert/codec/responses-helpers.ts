/** What the tests of the responses codec share: recordings, contexts, and a reader of event streams. */

import assert from 'node:assert/strict';
import OpenAI from 'openai';
import { isObject, type JsonObject, listOf, tryParse } from '../../../../core/json/json.ts';
import type { EncodeContext, ReplyContext } from '../../../../plugins/common/canonical/codec.ts';
import { DroppedParameters } from '../../../../plugins/common/canonical/dropped-parameters.ts';
import { ReplyEvents, type ToolNames } from '../../../../plugins/common/canonical/events.ts';
import type { OpaqueState } from '../../../../plugins/common/canonical/prompt.ts';
import type { Event, UsageSeen } from '../../../../plugins/common/canonical/reply.ts';
import type { Target } from '../../../../plugins/common/domain/upstreams.ts';
import { responsesCodec } from '../../../../plugins/protocol-convert/protocols/responses/codec.ts';

export interface Frame {
  readonly event: string | undefined;
  readonly data: JsonObject;
}

/** The events of a stream that came whole; comments and `[DONE]` left out. */
export function framesOf(text: string): Frame[] {
  return text.split(/\r?\n\r?\n/).flatMap((block) => {
    const lines = block.split(/\r?\n/);
    const data = lines.flatMap((line) => (line.startsWith('data:') ? [line.slice(5)] : [])).join('\n');
    const json = tryParse(data);
    const event = lines
      .find((line) => line.startsWith('event:'))
      ?.slice(6)
      .trim();
    return isObject(json) ? [{ event, data: json }] : [];
  });
}

export function decodeContext(open: (text: string) => OpaqueState | undefined = () => undefined) {
  return { dropped: new DroppedParameters(responsesCodec.spelling), open };
}

export function encodeContext(more: Partial<EncodeContext> = {}): EncodeContext {
  return {
    target: { model: 'upstream-model', protocol: 'responses', upstream: { dropFields: {} } } as unknown as Target,
    traits: {},
    maker: 'maker',
    dropped: new DroppedParameters(responsesCodec.spelling),
    stream: false,
    maxOutputTokens: undefined,
    ...more,
  };
}

const usageSeen: UsageSeen = {
  usage: { input: 10, cache_read: 4, cache_write_5m: 2, output: 7, reasoning: 3 },
  estimated: false,
};

export function replyContext(more: Partial<ReplyContext> = {}): ReplyContext {
  return {
    exchangeId: '0197f3c2-aaaa-7bbb-8ccc-0123456789ab',
    call: {
      protocol: 'responses',
      model: 'asked-model',
      stream: true,
      billable: true,
      inputTokens: 1,
      maxOutputTokens: undefined,
      choices: 1,
    },
    request: { model: 'asked-model', input: 'Hi' },
    createdAt: 1_800_000_000,
    now: () => 1_800_000_009,
    seal: (opaqueState) => `gw1.${Buffer.from(opaqueState).toString('base64url')}`,
    usage: () => usageSeen,
    ...more,
  };
}

/** The reverse of `seal` above. */
export function openSeal(text: string, maker = 'maker'): OpaqueState | undefined {
  return text.startsWith('gw1.') ? { maker, value: Buffer.from(text.slice(4), 'base64url').toString() } : undefined;
}

/** The events that an upstream's frames amount to. */
export function eventsOf(frames: readonly Frame[], names: ToolNames = new Map()): Event[] {
  const events: Event[] = [];
  const decoder = responsesCodec.createDecoder(
    new ReplyEvents((event) => events.push(event), { names, idSeed: 'seed' }),
  );
  for (const { data, event } of frames) decoder.payload(data, event);
  decoder.end();
  return events;
}

/** The events that a whole answer amounts to. */
export function eventsOfReply(json: JsonObject, names: ToolNames = new Map()): Event[] {
  const events: Event[] = [];
  responsesCodec.decodeReply(json, new ReplyEvents((event) => events.push(event), { names, idSeed: 'seed' }));
  return events;
}

/** The stream that a client gets of these events. */
export function streamOf(events: readonly Event[], context = replyContext()): string {
  const encoder = responsesCodec.createEncoder(context);
  return events.map((event) => encoder.event(event)).join('') + encoder.finish();
}

/** What the official SDK makes of a stream; throws where the stream breaks its rules. */
export async function readBySdk(stream: string) {
  const client = new OpenAI({
    apiKey: 'key',
    baseURL: 'http://127.0.0.1:1/v1',
    maxRetries: 0,
    fetch: async () => new Response(stream, { headers: { 'content-type': 'text/event-stream' } }),
  });
  return client.responses.stream({ model: 'asked-model', input: 'Hi' }).finalResponse();
}

/** What a response object says, distinguished by kind. */
export function saidIn(response: JsonObject) {
  const items = listOf(response['output']) as JsonObject[];
  const contents = items.flatMap((item) => listOf(item['content']) as JsonObject[]);
  return {
    text: contents.map((part) => (part['type'] === 'output_text' ? part['text'] : '')).join(''),
    refusal: contents.map((part) => part['refusal'] ?? '').join(''),
    reasoning: items
      .filter((item) => item['type'] === 'reasoning')
      .map((item) => listOf(listOf(item['summary']).length > 0 ? item['summary'] : item['content']) as JsonObject[])
      .map((parts) => parts.map((part) => part['text']).join('\n\n'))
      .filter((text) => text !== ''),
    calls: items
      .filter(({ type }) => type === 'function_call' || type === 'custom_tool_call')
      .map((item) => [item['call_id'], item['name'], item['arguments'] ?? item['input']]),
    annotations: contents.flatMap((part) => listOf(part['annotations'])),
    searches: items.filter(({ type }) => type === 'web_search_call').length,
    images: items.flatMap(({ result }) => (typeof result === 'string' ? [result] : [])),
    status: response['status'],
  };
}

export function endOf(stream: string): JsonObject {
  const last = framesOf(stream).at(-1)!;
  assert.ok(isObject(last.data['response']), 'the stream ends with a response');
  return last.data['response'];
}
