/** Counts what the vendor's own tools did for an answer of the responses protocol: runs, containers, pictures. Pure. */
import { type JsonObject, objectOf, textOf } from '../../../../core/json/json.ts';
import { pictureTokens, readCount, type Usage } from '../../../common/domain/usage.ts';
import type { Counts, Reading } from '../../../common/wire/counts.ts';
import type { UsageMeterOptions } from '../../../common/wire/usage-meter.ts';

/** Items of calls by counter; pictures and containers are counted apart. */
const callItems = [
  ['searches', 'web_search_call'],
  ['codeRuns', 'code_interpreter_call'],
  ['fileSearches', 'file_search_call'],
  ['otherCalls', 'mcp_call'],
] as const;

/** Counters that vendors report, by ours. Several are added up. */
const reportedTools = [
  ['searches', ['web_search_calls']],
  ['codeRuns', ['code_interpreter_calls']],
  ['fileSearches', ['file_search_calls', 'document_search_calls', 'collections_search_calls']],
  ['otherCalls', ['x_search_calls', 'mcp_calls']],
  ['pictures', ['image_generation_calls']],
] as const;

export function takeTools(counts: Counts, usage: JsonObject): void {
  const tools = objectOf(usage['server_side_tool_usage_details']);
  if (tools !== undefined) for (const [name, members] of reportedTools) counts.take(name, sumOf(tools, members));
  counts.take('searches', objectOf(usage['server_tool_use'])?.['web_search_requests']);
}

function sumOf(tools: JsonObject, members: readonly string[]): number | undefined {
  const found = members.map((member) => readCount(tools[member])).filter((count) => count !== undefined);
  return found.length === 0 ? undefined : found.reduce((sum, count) => sum + count, 0);
}

/** Without a counter for the vendor's own tools, their items are counted. */
export function takeCalls(counts: Counts, response: JsonObject, output: readonly unknown[]): void {
  const usage = objectOf(response['tool_usage']) ?? {};
  counts.take('searches', objectOf(usage['web_search'])?.['num_requests']);
  const items = output.map((item) => objectOf(item) ?? {});
  for (const [name, type] of callItems) {
    const calls = items.filter((item) => isCall(item, type)).length;
    if (calls > 0 && counts.get(name) === undefined) counts.take(name, calls);
  }
  counts.take('containers', containersIn(items));
  takePictures(counts, objectOf(usage['image_gen']) ?? {}, items);
}

/** Opening a page from a search is not a search. */
function isCall(item: JsonObject, type: string): boolean {
  return item['type'] === type && (textOf(objectOf(item['action'])?.['type']) ?? 'search') === 'search';
}

/** Containers of the vendor in which a shell ran, beside those that are counted by their code. */
function containersIn(items: readonly JsonObject[]): number {
  const known = new Set(items.map((item) => item['type'] === 'code_interpreter_call' && item['container_id']));
  const used = new Set<unknown>();
  for (const { type, environment } of items) {
    const place = type === 'shell_call' ? objectOf(environment) : undefined;
    if (place !== undefined && place['type'] !== 'local') used.add(place['container_id']);
  }
  return [...used].filter((id) => !known.has(id as string)).length;
}

function takePictures(counts: Counts, tokens: JsonObject, items: readonly JsonObject[]): void {
  const made = items.filter(({ type, status }) => type === 'image_generation_call' && status !== 'failed').length;
  const input = objectOf(tokens['input_tokens_details']) ?? {};
  const cached = objectOf(tokens['cached_tokens_details']) ?? {};
  const output = objectOf(tokens['output_tokens_details']) ?? {};
  counts.take('pictureInput', tokens['input_tokens']);
  counts.take('pictureInputImage', input['image_tokens']);
  counts.take('pictureCached', tokens['cached_tokens']);
  counts.take('pictureCachedImage', cached['cached_image_tokens']);
  counts.take('pictureOutput', tokens['output_tokens']);
  counts.take('pictureOutputText', output['text_tokens']);
  // Tokens without an item are of a picture all the same.
  const least = (counts.get('pictureOutput') ?? 0) > 0 ? 1 : 0;
  if (made + least > 0 && counts.get('pictures') === undefined) counts.take('pictures', Math.max(made, least));
  if (made > 0) takeAuthors(counts, items);
}

/** An SVG is written by a language model that the vendor runs beside the one that paints. */
function takeAuthors(counts: Counts, items: readonly JsonObject[]): void {
  const reported = items.map((item) => objectOf(item['svg_usage']) ?? {});
  const sum = (name: string) => reported.reduce((total, usage) => total + (readCount(usage[name]) ?? 0), 0);
  counts.take('authorInput', sum('input_tokens'));
  counts.take('authorOutput', sum('output_tokens'));
}

/** `response.image_generation_call.completed` and its like, for streams that break before the end. */
const completedCall = /^response\.(web_search|code_interpreter|file_search|image_generation)_call\.completed$/;

export function takeRun(counts: Counts, event: string): void {
  if (!event.endsWith('_call.completed')) return;
  const tool = completedCall.exec(event)?.[1];
  if (tool !== undefined) counts.take(`seen ${tool}`, (counts.get(`seen ${tool}`) ?? 0) + 1);
}

export function toolUsage(counts: Counts): Usage {
  const searches = counts.get('searches') ?? counts.get('seen web_search');
  const [runs, containers] = [counts.get('codeRuns') ?? counts.get('seen code_interpreter'), counts.get('containers')];
  const files = counts.get('fileSearches') ?? counts.get('seen file_search');
  const pictures = counts.get('pictures') ?? counts.get('seen image_generation');
  const others = counts.get('otherCalls');
  const code = runs === undefined && (containers ?? 0) === 0 ? undefined : (runs ?? 0) + (containers ?? 0);
  return {
    ...(searches === undefined ? {} : { web_search: searches }),
    ...(code === undefined ? {} : { code_execution: code }),
    ...(files === undefined ? {} : { file_search: files }),
    ...(others === undefined ? {} : { call: others }),
    ...(pictures === undefined ? {} : { image: pictures }),
  };
}

function withUnreported(reading: Reading): Reading {
  const { image = 0, output_image: known = 0 } = reading.usage;
  if (image === 0) return reading;
  return { ...reading, usage: { ...reading.usage, output_image: known + image * pictureTokens }, isUncertain: true };
}

/** What the authors of SVGs have read and written is charged as text of the model that called them. */
export function withAuthors(reading: Reading, counts: Counts): Reading {
  const [read, written] = [counts.get('authorInput') ?? 0, counts.get('authorOutput') ?? 0];
  if (read + written === 0) return reading;
  const { input = 0, output = 0 } = reading.usage;
  return { ...reading, usage: { ...reading.usage, input: input + read, output: output + written } };
}

/** Pictures are charged by piece where the price names pieces, else by the tokens that the vendor counted for them. */
export function withPictures(reading: Reading, counts: Counts, isPriced: UsageMeterOptions['isPriced']): Reading {
  if (isPriced === undefined || isPriced('image')) return reading;
  if (counts.get('pictureOutput') === undefined) return isPriced('output_image') ? withUnreported(reading) : reading;
  const of = (name: string) => counts.get(name) ?? 0;
  const cachedImage = Math.min(of('pictureCachedImage'), of('pictureInputImage'));
  const inputImage = Math.min(of('pictureInputImage'), of('pictureInput'));
  const cachedText = Math.min(Math.max(0, of('pictureCached') - cachedImage), of('pictureInput') - inputImage);
  const text = Math.min(of('pictureOutputText'), of('pictureOutput'));
  const { usage } = reading;
  const added: Usage = {
    input: of('pictureInput') - inputImage - cachedText,
    cache_read: cachedText,
    input_image: inputImage - cachedImage,
    cache_read_image: cachedImage,
    output: text,
    output_image: of('pictureOutput') - text,
  };
  const sums: { [name: string]: number } = { ...usage };
  for (const [name, count] of Object.entries(added)) if (count > 0) sums[name] = (sums[name] ?? 0) + count;
  return { ...reading, usage: sums };
}
