/** Meters the responses protocol: usage, end and errors, parsing only the frames that can carry them. Pure. */
import type { Services } from '../../../../core/prices.ts';
import type { Usage } from '../../../../core/usage.ts';
import { Counts, type Reading, split } from '../../counts.ts';
import { readFrame } from '../../frame.ts';
import { asLatin1, leadingEvent, textBytes, textPattern } from '../../glances.ts';
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../json.ts';
import type { Tap, Verdict } from '../../protocol.ts';
import { grantedServices } from '../../surcharges.ts';
import { TextMeter, textBytesIn } from '../../text-meter.ts';

const deltaText = textPattern('delta');
const textNames = new Set(['text', 'arguments', 'input', 'refusal', 'code']);
const endings: Readonly<Record<string, Verdict>> = {
  'response.completed': 'last',
  'response.incomplete': 'last',
  'response.failed': 'failed',
};

export class ResponsesTap implements Tap {
  readonly text = new TextMeter();
  complete = false;
  error: JsonObject | undefined;
  upstreamId: string | undefined;
  finish: string | undefined;
  itemIds: readonly string[] = [];
  #tier: unknown;
  readonly #counts = new Counts();

  get reading(): Reading {
    return this.#counts.reading(readUsage);
  }

  get services(): Services {
    return grantedServices(this.#tier, 'global');
  }

  frame(raw: Buffer): Verdict {
    const named = leadingEvent(raw);
    // Most frames are deltas with their name in front; a vendor that sends no names has each frame parsed.
    if (named?.endsWith('.delta')) {
      this.text.add(textBytes(asLatin1(raw), deltaText));
      return 'pass';
    }
    if (named !== undefined && named !== 'error' && named !== 'response.created' && !Object.hasOwn(endings, named))
      return 'pass';
    const read = readFrame(raw);
    return read === undefined ? 'pass' : this.payload(read.json, named);
  }

  whole(json: JsonObject): void {
    if (json['error'] && json['output'] === undefined) this.error = json;
    this.#response(json);
    this.text.add(textBytesIn(json['output'], textNames));
    if (isObject(json['usage'])) this.text.reported();
    this.complete = true;
  }

  payload(payload: JsonObject, event: string | undefined): Verdict {
    const type = textOf(payload['type']) ?? event ?? '';
    if (type.endsWith('.delta')) {
      this.text.add(Buffer.byteLength(textOf(payload['delta']) ?? ''));
      return 'pass';
    }
    // A bare error object is met where a vendor fails before its first event.
    if (type === 'error' || (type === '' && payload['error'])) {
      this.error = payload;
      return 'error';
    }
    const response = objectOf(payload['response']);
    if (response !== undefined) this.#response(response);
    const ending = Object.hasOwn(endings, type) ? endings[type]! : 'pass';
    if (ending !== 'pass') this.complete = true;
    if (ending === 'failed') this.error = payload;
    return ending;
  }

  #response(response: JsonObject): void {
    this.upstreamId ??= textOf(response['id']);
    this.finish = textOf(response['status']) ?? this.finish;
    this.#tier = response['service_tier'] ?? this.#tier;
    const output = listOf(response['output']);
    if (output.length > 0) this.itemIds = output.flatMap((item) => textOf(objectOf(item)?.['id']) ?? []);
    const usage = objectOf(response['usage']);
    if (usage === undefined) return;
    takeCounts(this.#counts, usage);
    takeCalls(this.#counts, response, output);
    this.text.reported();
  }
}

function takeCounts(counts: Counts, usage: JsonObject): void {
  const input = objectOf(usage['input_tokens_details']) ?? {};
  const output = objectOf(usage['output_tokens_details']) ?? {};
  counts.take('input', usage['input_tokens']);
  counts.take('output', usage['output_tokens']);
  counts.take('total', usage['total_tokens']);
  counts.take('cached', input['cached_tokens']);
  counts.take('cacheWrite', input['cache_write_tokens']);
  counts.take('cacheWriteLong', objectOf(input['cache_write_tokens_details'])?.['ttl_12h_tokens']);
  counts.take('audioIn', input['audio_tokens']);
  counts.take('imageIn', input['image_tokens']);
  counts.take('reasoning', output['reasoning_tokens']);
  counts.take('audioOut', output['audio_tokens']);
  counts.take('imageOut', output['image_tokens']);
  const tools = objectOf(usage['server_side_tool_usage_details']) ?? {};
  counts.take('searches', tools['web_search_calls']);
  counts.take('codeRuns', tools['code_interpreter_calls']);
  counts.take('fileSearches', tools['file_search_calls']);
  counts.take('otherCalls', tools['x_search_calls']);
}

/** Where no counter tells of the vendor's own tools, their items do. */
function takeCalls(counts: Counts, response: JsonObject, output: readonly unknown[]): void {
  counts.take('searches', objectOf(objectOf(response['tool_usage'])?.['web_search'])?.['num_requests']);
  for (const [name, type] of callItems) {
    const calls = output.filter((item) => isCall(objectOf(item) ?? {}, type)).length;
    if (calls > 0 && counts.get(name) === undefined) counts.take(name, calls);
  }
}

/** Opening a page that a search has found is no search. */
function isCall(item: JsonObject, type: string): boolean {
  return item['type'] === type && (textOf(objectOf(item['action'])?.['type']) ?? 'search') === 'search';
}

const callItems = [
  ['searches', 'web_search_call'],
  ['codeRuns', 'code_interpreter_call'],
  ['fileSearches', 'file_search_call'],
] as const;

/** `input_tokens` includes cached and written tokens, `output_tokens` includes reasoning. */
function readUsage(counts: Counts): Reading {
  const input = counts.get('input');
  const output = outputOf(counts, input);
  const written = counts.get('cacheWrite');
  const long = counts.get('cacheWriteLong');
  const usage = {
    ...(input === undefined
      ? {}
      : split(input, 'input', [
          ['cache_read', counts.get('cached')],
          ['cache_write_1h', long],
          ['cache_write_5m', written === undefined ? undefined : Math.max(0, written - (long ?? 0))],
          ['input_audio', counts.get('audioIn')],
          ['input_image', counts.get('imageIn')],
        ])),
    ...(output === undefined
      ? {}
      : split(output, 'output', [
          ['reasoning', counts.get('reasoning')],
          ['output_audio', counts.get('audioOut')],
          ['output_image', counts.get('imageOut')],
        ])),
    ...toolUsage(counts),
  };
  return { usage, hasInput: input !== undefined, hasOutput: output !== undefined };
}

function toolUsage(counts: Counts): Usage {
  const [searches, runs] = [counts.get('searches'), counts.get('codeRuns')];
  const [files, others] = [counts.get('fileSearches'), counts.get('otherCalls')];
  return {
    ...(searches === undefined ? {} : { web_search: searches }),
    ...(runs === undefined ? {} : { code_execution: runs }),
    ...(files === undefined ? {} : { file_search: files }),
    ...(others === undefined ? {} : { call: others }),
  };
}

/** Where a vendor leaves reasoning out of the output, the total says so. */
function outputOf(counts: Counts, input: number | undefined): number | undefined {
  const output = counts.get('output');
  const total = counts.get('total');
  if (output === undefined || input === undefined || total === undefined) return output;
  const reasoning = counts.get('reasoning') ?? 0;
  return total - input - output === reasoning ? output + reasoning : output;
}
