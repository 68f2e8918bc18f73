/** Meters the responses protocol: usage, end and errors, parsing only the frames that can carry them. Pure. */

import { table } from '../../../../core/contract/table.ts';
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../../../core/json/json.ts';
import type { Services } from '../../../common/domain/prices.ts';
import { Counts, type Reading } from '../../../common/wire/counts.ts';
import { readFrame } from '../../../common/wire/frame.ts';
import { type CostOf, readCounters, takeCosts } from '../../../common/wire/readings.ts';
import { TextMeter, textBytesIn } from '../../../common/wire/text-meter.ts';
import type { UsageMeter, UsageMeterOptions, Verdict } from '../../../common/wire/usage-meter.ts';
import { grantedServices } from '../../metering/surcharges.ts';
import { asLatin1, isDeltaEvent, leadingEvent, textBytes, textPattern } from '../../request/fast-scan.ts';
import { mayHoldIds } from '../../request/vendor-ids.ts';
import { takeCalls, takeRun, takeTools, toolUsage, withAuthors, withPictures } from './tool-usage.ts';

const deltaText = textPattern('delta');
const textNames = new Set(['text', 'arguments', 'input', 'refusal', 'code']);
const endings: Readonly<Record<string, Verdict>> = table({
  'response.completed': 'last',
  'response.incomplete': 'last',
  'response.failed': 'failed',
  'response.cancelled': 'failed',
});
const itemDone = 'response.output_item.done';
const ended = new Set<unknown>(['completed', 'incomplete', 'in_progress', 'queued']);

/** Whether a whole answer says that there is none. */
function isFailed({ status, error, output }: JsonObject): boolean {
  if (status === 'failed' || status === 'cancelled') return true;
  return Boolean(error) && (output === undefined || !ended.has(status));
}

/** Without the request that a response object repeats. */
function failureOf({ status, error, usage }: JsonObject): JsonObject {
  const unsaid = {
    code: 'server_error',
    message: `The answer was ${status === 'cancelled' ? 'cancelled' : 'not finished'}.`,
  };
  return { error: error || unsaid, ...(isObject(usage) ? { usage } : {}) };
}

export class ResponsesUsageMeter implements UsageMeter {
  readonly text = new TextMeter();
  complete = false;
  error: JsonObject | undefined;
  upstreamId: string | undefined;
  finish: string | undefined;
  itemIds: readonly string[] = [];
  #tier: unknown;
  readonly #counts = new Counts();
  readonly #issued: UsageMeterOptions['issued'];
  readonly #items: UsageMeterOptions['items'];
  readonly #costOf: CostOf | undefined;
  readonly #isPriced: UsageMeterOptions['isPriced'];

  constructor({
    costOf,
    issued,
    items,
    isPriced,
  }: Pick<UsageMeterOptions, 'costOf' | 'issued' | 'items' | 'isPriced'> = {}) {
    this.#issued = issued;
    this.#items = items;
    this.#costOf = costOf;
    this.#isPriced = isPriced;
  }

  get reading(): Reading {
    const reading = this.#counts.reading(readUsage, this.#costOf);
    return withAuthors(withPictures(reading, this.#counts, this.#isPriced), this.#counts);
  }

  get services(): Services {
    return grantedServices(this.#tier, 'global');
  }

  frame(raw: Buffer): Verdict {
    // Most frames are deltas with their name in front; without names, each frame is parsed.
    if (isDeltaEvent(raw)) {
      this.text.add(textBytes(asLatin1(raw), deltaText));
      return 'pass';
    }
    const named = leadingEvent(raw);
    if (named !== undefined && named !== 'error' && named !== 'response.created' && !Object.hasOwn(endings, named)) {
      takeRun(this.#counts, named);
      if (this.#items !== undefined && named === itemDone) this.#items(readFrame(raw)?.json ?? {});
      if (this.#issued !== undefined && mayHoldIds(raw)) this.#issued(readFrame(raw)?.json ?? {});
      return 'pass';
    }
    const read = readFrame(raw);
    return read === undefined ? 'pass' : this.payload(read.json, named);
  }

  whole(json: JsonObject): void {
    if (isFailed(json)) this.error = failureOf(json);
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
    // Some vendors send a bare error object when they fail before the first event.
    if (type === 'error' || (type === '' && payload['error'])) {
      this.error = payload;
      return 'error';
    }
    takeRun(this.#counts, type);
    const response = objectOf(payload['response']);
    if (response !== undefined) this.#response(response);
    else this.#issued?.(payload);
    if (type === itemDone) this.#items?.(payload);
    const ending = Object.hasOwn(endings, type) ? endings[type]! : 'pass';
    if (ending !== 'pass') this.complete = true;
    if (ending === 'failed') this.error = payload;
    return ending;
  }

  #response(response: JsonObject): void {
    this.upstreamId ??= textOf(response['id']);
    this.#issued?.(response);
    this.#items?.(response);
    const reason = objectOf(response['incomplete_details'])?.['reason'];
    this.finish = reason === 'content_filter' ? reason : (textOf(response['status']) ?? this.finish);
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
  takeTools(counts, usage);
  takeCosts(counts, usage);
}

/** `input_tokens` includes cached and written tokens, `output_tokens` includes reasoning; not at every vendor. */
function readUsage(counts: Counts, costOf: CostOf | undefined): Reading {
  const written = counts.get('cacheWrite');
  const long = counts.get('cacheWriteLong');
  const counters = {
    input: counts.get('input'),
    output: counts.get('output'),
    total: counts.get('total'),
    inputDetails: [
      { class: 'cache_read', count: counts.get('cached') },
      { class: 'cache_write_1h', count: long },
      { class: 'cache_write_5m', count: written === undefined ? undefined : Math.max(0, written - (long ?? 0)) },
      { class: 'input_audio', count: counts.get('audioIn') },
      { class: 'input_image', count: counts.get('imageIn') },
    ],
    outputDetails: [
      { class: 'reasoning', count: counts.get('reasoning') },
      { class: 'output_audio', count: counts.get('audioOut') },
      { class: 'output_image', count: counts.get('imageOut') },
    ],
    unnamed: 'reasoning',
  } as const;
  const reading = readCounters(counters, counts, costOf);
  return { ...reading, usage: { ...reading.usage, ...toolUsage(counts) } };
}
