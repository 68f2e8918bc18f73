/** Replays a stored response as the stream that it was: the official events in order. Pure. */
import { isObject, type JsonObject, listOf, textOf } from '../../../core/json/json.ts';
import { formatFrame } from '../../common/kit/sse.ts';

/** The frames of the events behind number `after`. */
export function replayed(response: JsonObject, after: number): string {
  let number = 0;
  const frames: string[] = [];
  for (const event of eventsOf(response)) {
    const sequence_number = number++;
    const type = String(event['type']);
    if (sequence_number > after) frames.push(formatFrame(JSON.stringify({ ...event, sequence_number }), type));
  }
  return frames.join('');
}

function* eventsOf(response: JsonObject): Generator<JsonObject> {
  const begun = { ...response, ...unfinished };
  yield { type: 'response.created', response: begun };
  yield { type: 'response.in_progress', response: begun };
  for (const [output_index, item] of listOf(response['output']).entries())
    if (isObject(item)) yield* itemEvents(item, output_index);
  yield { type: `response.${textOf(response['status']) ?? 'completed'}`, response };
}

const unfinished = {
  status: 'in_progress',
  completed_at: null,
  error: null,
  incomplete_details: null,
  usage: null,
  output: [],
  output_text: undefined,
};

function* itemEvents(item: JsonObject, output_index: number): Generator<JsonObject> {
  const place = { output_index, item_id: item['id'] };
  yield { type: 'response.output_item.added', output_index, item: { ...item, ...emptied(item) } };
  for (const [content_index, part] of listOf(item['content']).entries())
    if (isObject(part)) yield* partEvents(part, { ...place, content_index });
  for (const [summary_index, part] of listOf(item['summary']).entries())
    if (isObject(part)) yield* summaryEvents(part, { ...place, summary_index });
  if (item['type'] === 'function_call')
    yield* grown('response.function_call_arguments', place, 'arguments', textOf(item['arguments']) ?? '');
  if (item['type'] === 'custom_tool_call')
    yield* grown('response.custom_tool_call_input', place, 'input', textOf(item['input']) ?? '');
  yield { type: 'response.output_item.done', output_index, item };
}

/** What an item has at its start instead of what its events add. */
function emptied(item: JsonObject): JsonObject {
  return {
    ...('status' in item ? { status: 'in_progress' } : {}),
    ...(Array.isArray(item['content']) ? { content: [] } : {}),
    ...(Array.isArray(item['summary']) ? { summary: [] } : {}),
    ...(item['type'] === 'function_call' ? { arguments: '' } : {}),
    ...(item['type'] === 'custom_tool_call' ? { input: '' } : {}),
    ...(item['type'] === 'tool_search_call' ? { arguments: {} } : {}),
  };
}

function* partEvents(part: JsonObject, place: JsonObject): Generator<JsonObject> {
  const isRefusal = part['type'] === 'refusal';
  const member = isRefusal ? 'refusal' : 'text';
  const lists = part['type'] === 'output_text' ? { annotations: [], logprobs: [] } : {};
  yield { type: 'response.content_part.added', ...place, part: { ...part, ...lists, [member]: '' } };
  const name = { refusal: 'response.refusal', reasoning_text: 'response.reasoning_text' };
  const event = name[part['type'] as keyof typeof name] ?? 'response.output_text';
  const logprobs = event === 'response.output_text' ? { logprobs: part['logprobs'] ?? [] } : {};
  yield* grown(event, { ...place, ...logprobs }, member, textOf(part[member]) ?? '');
  for (const [annotation_index, annotation] of listOf(part['annotations']).entries())
    yield { type: 'response.output_text.annotation.added', ...place, annotation_index, annotation };
  yield { type: 'response.content_part.done', ...place, part };
}

function* summaryEvents(part: JsonObject, place: JsonObject): Generator<JsonObject> {
  yield { type: 'response.reasoning_summary_part.added', ...place, part: { ...part, text: '' } };
  yield* grown('response.reasoning_summary_text', place, 'text', textOf(part['text']) ?? '');
  yield { type: 'response.reasoning_summary_part.done', ...place, part };
}

function* grown(event: string, place: JsonObject, member: string, text: string): Generator<JsonObject> {
  if (text !== '') yield { type: `${event}.delta`, ...place, delta: text };
  yield { type: `${event}.done`, ...place, [member]: text };
}
