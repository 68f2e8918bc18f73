/** A client of the responses protocol, as the official SDK words requests and reads answers. */
import assert from 'node:assert/strict';
import type {
  Client,
  ClientRequest,
  Meaning,
  PlayUsage,
  RequestPart,
  RequestTurn,
  Seen,
  SeenError,
} from '../scenario.ts';
import { dataFrames } from './frames.ts';

interface Part {
  readonly type: string;
  text?: string;
  refusal?: string;
}
interface Item {
  readonly id?: string;
  readonly type: string;
  readonly content?: Part[];
  readonly summary?: Part[];
  readonly call_id?: string;
  readonly name?: string;
  arguments?: string;
}
interface ResponsesUsage {
  readonly input_tokens: number;
  readonly input_tokens_details: { readonly cached_tokens: number; readonly cache_write_tokens?: number };
  readonly output_tokens: number;
  readonly output_tokens_details: { readonly reasoning_tokens: number };
  readonly total_tokens: number;
}
interface Body {
  readonly id: string;
  readonly object: string;
  readonly status: string;
  readonly model: string;
  readonly created_at: number;
  readonly output: readonly Item[];
  readonly usage?: ResponsesUsage | null;
  readonly incomplete_details?: { readonly reason: string } | null;
  readonly error?: { readonly code: string; readonly message: string } | null;
}
interface Payload {
  readonly type: string;
  readonly sequence_number?: number;
  readonly response?: Body;
  readonly item?: Item;
  readonly item_id?: string;
  readonly output_index?: number;
  readonly content_index?: number;
  readonly summary_index?: number;
  readonly part?: Part;
  readonly delta?: string;
  readonly text?: string;
  readonly refusal?: string;
  readonly arguments?: string;
  readonly code?: string | null;
  readonly message?: string;
  readonly error?: { readonly message: string; readonly code?: string | null; readonly type?: string };
}

export const responsesClient: Client = {
  protocol: 'responses',
  lacks: new Set(['audio', 'choices', 'stop', 'stop-sequence', 'result-error']),

  word(request, { model, isStream }) {
    const body = {
      model,
      ...(request.system === undefined ? {} : { instructions: request.system }),
      input: request.turns.flatMap(itemsOf),
      store: false,
      ...optionsOf(request),
      ...(isStream ? { stream: true } : {}),
    };
    return { path: '/v1/responses', headers: {}, body: JSON.stringify(body) };
  },

  readWhole(text) {
    const body = JSON.parse(text) as Body;
    assertHead(body);
    for (const item of body.output) assertItem(item);
    return seen(body);
  },

  readStream(text) {
    const folding: Folding = { id: undefined, output: [], openItems: new Set(), last: undefined, failed: undefined };
    const frames = dataFrames(text);
    for (const [index, { event, data }] of frames.entries()) {
      const payload = JSON.parse(data) as Payload;
      assert.equal(event, payload.type, 'the event is named as its payload');
      assert.ok(folding.last === undefined, 'nothing comes after the end');
      if (index === 0 && payload.type !== 'error') assert.equal(payload.type, 'response.created');
      assert.equal(payload.sequence_number, index, 'events are numbered without gaps');
      take(folding, payload);
    }
    if (folding.failed !== undefined) return { ...soFar(folding.output), error: folding.failed };
    assert.ok(folding.last, 'a terminal event came');
    assert.equal(folding.openItems.size, 0, 'every item is done');
    assert.deepEqual(folding.last.output, folding.output, 'the terminal event repeats what was streamed');
    return seen(folding.last);
  },

  readError: (body) => {
    const { error } = JSON.parse(body) as { error: { message: string; type: string; param?: string; code?: string } };
    assert.equal(typeof error.message, 'string');
    return { message: error.message, type: error.type, code: error.code ?? undefined, field: error.param ?? undefined };
  },
};

const hints = {
  temperature: 0.5,
  top_p: 0.9,
  text: { verbosity: 'low' },
  safety_identifier: 'user-1',
  prompt_cache_key: 'conversation-1',
  metadata: { team: 'blue' },
  truncation: 'auto',
};

function optionsOf(request: ClientRequest): object {
  return {
    ...(request.maxOutputTokens === undefined ? {} : { max_output_tokens: request.maxOutputTokens }),
    ...(request.reasons
      ? { reasoning: { effort: 'high', summary: 'auto' }, include: ['reasoning.encrypted_content'] }
      : {}),
    ...(request.hints ? hints : {}),
    ...(request.tools === undefined
      ? {}
      : {
          tools: request.tools.map(({ name, description, schema }) => ({
            type: 'function',
            name,
            description,
            parameters: schema,
            strict: false,
          })),
        }),
    ...(request.schema === undefined
      ? {}
      : { text: { format: { type: 'json_schema', name: 'answer', strict: true, schema: request.schema } } }),
  };
}

function itemsOf(turn: RequestTurn): readonly unknown[] {
  switch (turn.by) {
    case 'user':
      return [{ role: 'user', content: turn.parts.map(partOf) }];
    case 'assistant':
      return [
        ...(turn.text === undefined
          ? []
          : [{ role: 'assistant', content: [{ type: 'output_text', text: turn.text, annotations: [] }] }]),
        ...(turn.calls ?? []).map(({ id, name, input }) => ({
          type: 'function_call',
          call_id: id,
          name,
          arguments: JSON.stringify(input),
        })),
      ];
    case 'echo':
      return turn.native;
    case 'tools':
      return turn.results.map(({ callId, text, image }) => ({
        type: 'function_call_output',
        call_id: callId,
        output: image ? [partOf({ kind: 'text', text }), partOf({ kind: 'image', ...image })] : text,
      }));
  }
}

function partOf(part: RequestPart): unknown {
  if (part.kind === 'audio') throw new Error('there is no word for a sound');
  if (part.kind === 'text') return { type: 'input_text', text: part.text };
  const url = `data:${part.mediaType};base64,${part.base64}`;
  if (part.kind === 'image') return { type: 'input_image', image_url: url, detail: 'auto' };
  return { type: 'input_file', filename: part.name, file_data: url };
}

function assertHead(body: Body): void {
  assert.equal(body.object, 'response');
  assert.ok(body.id !== '' && typeof body.model === 'string' && Number.isInteger(body.created_at));
  assert.ok(Array.isArray(body.output));
}

function assertItem(item: Item): void {
  assert.ok(item.id, 'an item has an id');
  if (item.type === 'message') {
    for (const part of item.content!) if (part.type === 'output_text') assert.ok('annotations' in part, 'annotations');
  }
  if (item.type === 'function_call') assert.ok(item.call_id && item.name && typeof item.arguments === 'string');
  if (item.type === 'reasoning') assert.ok(Array.isArray(item.summary));
}

interface Folding {
  id: string | undefined;
  output: Item[];
  openItems: Set<number>;
  last: Body | undefined;
  failed: SeenError | undefined;
}

/** The rules of the official SDK's accumulator. */
function take(folding: Folding, payload: Payload): void {
  switch (payload.type) {
    case 'response.created':
    case 'response.in_progress':
      assertHead(payload.response!);
      folding.id ??= payload.response!.id;
      assert.equal(payload.response!.id, folding.id);
      assert.deepEqual(payload.response!.output, []);
      return;
    case 'response.output_item.added':
      assert.equal(payload.output_index, folding.output.length, 'items are appended without gaps');
      assert.ok(payload.item!.id, 'an item has an id');
      folding.output.push(structuredClone(payload.item!));
      folding.openItems.add(payload.output_index!);
      return;
    case 'response.output_item.done':
      takeDone(folding, payload);
      return;
    case 'response.completed':
    case 'response.incomplete':
      assert.equal(payload.response!.status, payload.type.slice('response.'.length));
      assert.equal(payload.response!.id, folding.id);
      folding.last = payload.response!;
      return;
    case 'response.failed':
      folding.last = payload.response!;
      assert.equal(payload.response!.status, 'failed');
      folding.failed = failure(payload.response!.error!);
      return;
    case 'error':
      folding.failed = failure(payload.error ?? (payload as { message: string; code: string | null }));
      return;
    default:
      takePart(folding, payload);
  }
}

function failure(error: { message: string; code?: string | null; type?: string }): SeenError {
  assert.equal(typeof error.message, 'string');
  return { message: error.message, type: error.type ?? 'error', code: error.code ?? undefined, field: undefined };
}

function takeDone(folding: Folding, { output_index: index, item }: Payload): void {
  assert.ok(folding.openItems.delete(index!), 'an item is done once, after it was added');
  const streamed = folding.output[index!]!;
  assert.equal(item!.id, streamed.id, 'an item keeps its id');
  assert.equal(item!.type, streamed.type);
  assert.equal(item!.call_id, streamed.call_id, 'a call keeps its id');
  assert.deepEqual(item!.content ?? [], streamed.content ?? [], 'the item repeats what was streamed');
  assert.deepEqual(item!.summary ?? [], streamed.summary ?? []);
  assert.equal(item!.arguments ?? '', streamed.arguments ?? '');
  assertItem(item!);
  folding.output[index!] = item!;
}

function takePart(folding: Folding, payload: Payload): void {
  const index = payload.output_index!;
  const item = folding.output[index];
  assert.ok(item && folding.openItems.has(index), `${payload.type} belongs to an open item`);
  assert.equal(payload.item_id, item.id);
  const part = item.content?.[payload.content_index!];
  const summary = item.summary?.[payload.summary_index!];
  switch (payload.type) {
    case 'response.content_part.added':
      assert.equal(payload.content_index, item.content!.length);
      item.content!.push({ ...payload.part! });
      return;
    case 'response.output_text.delta':
      part!.text += payload.delta!;
      return;
    case 'response.output_text.done':
      assert.equal(payload.text, part!.text);
      return;
    case 'response.refusal.delta':
      part!.refusal += payload.delta!;
      return;
    case 'response.refusal.done':
      assert.equal(payload.refusal, part!.refusal);
      return;
    case 'response.content_part.done':
      assert.deepEqual(payload.part, part);
      return;
    case 'response.reasoning_summary_part.added':
      assert.equal(payload.summary_index, item.summary!.length);
      item.summary!.push({ ...payload.part! });
      return;
    case 'response.reasoning_summary_text.delta':
      summary!.text += payload.delta!;
      return;
    case 'response.reasoning_summary_text.done':
      assert.equal(payload.text, summary!.text);
      return;
    case 'response.reasoning_summary_part.done':
      assert.deepEqual(payload.part, summary);
      return;
    case 'response.function_call_arguments.delta':
      item.arguments += payload.delta!;
      return;
    default:
      assert.equal(payload.type, 'response.function_call_arguments.done');
      assert.equal(payload.arguments, item.arguments);
  }
}

function soFar(output: readonly Item[]): Seen {
  const contents = output.flatMap((item) => item.content ?? []);
  return {
    text: contents.map((part) => (part.type === 'output_text' ? part.text : '')).join(''),
    second: '',
    refusal: contents.map((part) => part.refusal ?? '').join(''),
    reasoning: output.flatMap((item) => (item.summary ?? []).map((part) => part.text)).join(''),
    calls: [],
    meanings: [],
    sequence: undefined,
    usage: undefined,
    echo: output,
    error: undefined,
  };
}

function seen(body: Body): Seen {
  const read = soFar(body.output);
  const calls = body.output
    .filter((item) => item.type === 'function_call')
    .map((item) => ({ id: item.call_id!, name: item.name!, input: JSON.parse(item.arguments!) }));
  return { ...read, calls, meanings: meaningsOf(body, read.refusal, calls.length), usage: usageOf(body.usage!) };
}

function meaningsOf({ status, incomplete_details: details }: Body, refusal: string, calls: number): readonly Meaning[] {
  if (status === 'incomplete') return details!.reason === 'content_filter' ? ['refusal'] : ['length'];
  assert.equal(status, 'completed');
  if (refusal !== '') return ['refusal'];
  return calls > 0 ? ['tool-calls'] : ['stop', 'stop-sequence'];
}

function usageOf(usage: ResponsesUsage): Partial<PlayUsage> {
  assert.equal(usage.total_tokens, usage.input_tokens + usage.output_tokens);
  assert.ok(Number.isInteger(usage.input_tokens_details.cached_tokens), 'the details are numbers');
  assert.ok(Number.isInteger(usage.output_tokens_details.reasoning_tokens), 'the details are numbers');
  return {
    input: usage.input_tokens,
    cacheRead: usage.input_tokens_details.cached_tokens,
    cacheWrite: usage.input_tokens_details.cache_write_tokens ?? 0,
    output: usage.output_tokens,
    reasoning: usage.output_tokens_details.reasoning_tokens,
  };
}
