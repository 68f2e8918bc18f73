/** Meters the messages protocol: usage, end and errors, parsing only the frames that can carry them. Pure. */

import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../../../core/json/json.ts';
import type { Services } from '../../../common/domain/prices.ts';
import type { Usage } from '../../../common/domain/usage.ts';
import { Counts, type Reading, split } from '../../../common/wire/counts.ts';
import { readFrame } from '../../../common/wire/frame.ts';
import { TextMeter, textBytesIn } from '../../../common/wire/text-meter.ts';
import type { UsageMeter, UsageMeterOptions, Verdict } from '../../../common/wire/usage-meter.ts';
import { grantedServices } from '../../metering/surcharges.ts';
import { asLatin1, leadingEvent, RepeatedFrame, textPattern } from '../../request/fast-scan.ts';
import { mayHoldIds } from '../../request/vendor-ids.ts';

const deltaNames = new Set(['text', 'thinking', 'partial_json']);
const deltaText = textPattern(...deltaNames);
const textNames = new Set(['text', 'thinking']);
const opaqueNames = new Set(['input']);
/** Blocks that the model wrote; results of the vendor's own tools are input. */
const writtenBlocks = new Set(['text', 'thinking', 'tool_use', 'server_tool_use']);
const silentEvents = new Set(['content_block_start', 'content_block_stop']);
/** After this many pings since the finish reason, the end is not expected any more: it normally follows at once. */
const pingsOfPatience = 2;

export class MessagesUsageMeter implements UsageMeter {
  readonly text = new TextMeter();
  #isStopped = false;
  error: JsonObject | undefined;
  upstreamId: string | undefined;
  finish: string | undefined;
  readonly #repeated = new RepeatedFrame();
  #tier: unknown;
  #speed: unknown;
  #region: unknown;
  readonly #counts = new Counts();
  /** Pings since the stream sent its finish reason; undefined: it has not sent one. */
  #pingsAfterReason: number | undefined;
  readonly #issued: UsageMeterOptions['issued'];

  constructor(options?: UsageMeterOptions) {
    this.#issued = options?.issued;
  }

  /** `message_stop`, or the stop reason, behind which nothing but the end is to come. */
  get complete(): boolean {
    return this.#isStopped || this.#pingsAfterReason !== undefined;
  }

  get reading(): Reading {
    return this.#counts.reading(readUsage);
  }

  /** A speed takes precedence over the tier beside it. */
  get services(): Services {
    return grantedServices(this.#speed === 'fast' ? 'fast' : (this.#tier ?? this.#speed), this.#region);
  }

  frame(raw: Buffer): Verdict {
    const latin1 = asLatin1(raw);
    const repeated = this.#repeated.textBytes(latin1);
    if (repeated > 0) {
      this.text.add(repeated);
      return 'pass';
    }
    const named = leadingEvent(raw);
    if (named === 'content_block_delta') {
      this.text.add(this.#repeated.scan(latin1, deltaText));
      this.#repeated.remember(latin1);
      return 'pass';
    }
    if (named === 'ping') return this.#ping();
    if (named !== undefined && silentEvents.has(named)) {
      if (this.#issued !== undefined && mayHoldIds(raw)) this.#issued(readFrame(raw)?.json ?? {});
      return 'pass';
    }
    const read = readFrame(raw);
    return read === undefined ? 'pass' : this.payload(read.json, named);
  }

  whole(json: JsonObject): void {
    if (json['type'] === 'error') this.error = json;
    this.#message(json);
    for (const block of listOf(json['content'])) takeCodeRun(this.#counts, block);
    const written = listOf(json['content']).filter((block) =>
      writtenBlocks.has(textOf(objectOf(block)?.['type']) ?? ''),
    );
    this.text.add(textBytesIn(written, textNames, opaqueNames));
    if (isObject(json['usage'])) this.text.reported();
    this.#isStopped = true;
  }

  payload(payload: JsonObject, event: string | undefined): Verdict {
    const type = textOf(payload['type']) ?? event;
    if (type === 'content_block_start') {
      this.#issued?.(payload);
      takeCodeRun(this.#counts, payload['content_block']);
    } else if (type === 'content_block_delta') this.text.add(textBytesIn(payload['delta'], deltaNames));
    else if (type === 'message_start') this.#message(objectOf(payload['message']) ?? {});
    else if (type === 'ping') return this.#ping();
    else if (type === 'message_delta') this.#delta(payload);
    else if (type === 'message_stop') {
      this.#isStopped = true;
      return 'last';
    } else if (type === 'error') {
      this.error = payload;
      return 'failed';
    }
    return 'pass';
  }

  /** Some upstreams keep a stream open after everything but its end. */
  #ping(): Verdict {
    if (this.#pingsAfterReason === undefined || ++this.#pingsAfterReason < pingsOfPatience) return 'pass';
    this.#isStopped = true;
    return 'overdue';
  }

  #message(message: JsonObject): void {
    this.upstreamId ??= textOf(message['id']);
    this.#issued?.(message);
    this.finish = textOf(message['stop_reason']) ?? this.finish;
    this.#takeUsage(message['usage']);
  }

  #delta(payload: JsonObject): void {
    this.#issued?.(payload);
    if (textOf(objectOf(payload['delta'])?.['stop_reason']) !== undefined) this.#pingsAfterReason = 0;
    this.finish = textOf(objectOf(payload['delta'])?.['stop_reason']) ?? this.finish;
    this.#takeUsage(payload['usage']);
  }

  #takeUsage(usage: unknown): void {
    if (!isObject(usage)) return;
    takeCounts(this.#counts, usage);
    this.#tier = usage['service_tier'] ?? this.#tier;
    this.#speed = usage['speed'] ?? this.#speed;
    this.#region = usage['inference_geo'] ?? this.#region;
    this.text.reported();
  }
}

/** Reports in a stream are cumulative: a later one replaces an earlier one, counter by counter. */
function takeCounts(counts: Counts, usage: JsonObject): void {
  takeRun(counts, usage);
  counts.take('thinking', objectOf(usage['output_tokens_details'])?.['thinking_tokens']);
  const tools = objectOf(usage['server_tool_use']) ?? {};
  counts.take('searches', tools['web_search_requests']);
  counts.take('fetches', tools['web_fetch_requests']);
  counts.take('codeRuns', tools['code_execution_requests']);
  takeIterations(counts, usage['iterations']);
}

function takeRun(counts: Counts, usage: JsonObject): void {
  const created = objectOf(usage['cache_creation']) ?? {};
  counts.take('input', usage['input_tokens']);
  counts.take('cacheRead', usage['cache_read_input_tokens']);
  counts.take('cacheWrite', usage['cache_creation_input_tokens']);
  counts.take('cacheWrite5m', created['ephemeral_5m_input_tokens']);
  counts.take('cacheWrite1h', created['ephemeral_1h_input_tokens']);
  counts.take('output', usage['output_tokens']);
}

/** Counters that an iteration has of its own, as `takeCounts` names them. */
const iterated = ['input', 'cacheRead', 'cacheWrite', 'cacheWrite5m', 'cacheWrite1h', 'output'] as const;

/**
 * Runs of a model that an answer consists of (compaction, advice, a fallback): the counters on top leave some of them out, and the sum
 * of all is the consumed usage. Of a report that follows without them, the larger counter holds: nothing is counted twice.
 */
function takeIterations(counts: Counts, iterations: unknown): void {
  const runs = listOf(iterations).filter(isObject);
  if (runs.length === 0) {
    if (counts.get('isIterated') !== undefined) counts.set('isIterated', 0);
    return;
  }
  counts.set('isIterated', 1);
  const sums = new Map<string, number>();
  for (const run of runs) {
    const own = new Counts();
    takeRun(own, run);
    for (const name of iterated) {
      const count = own.get(name);
      if (count !== undefined) sums.set(name, (sums.get(name) ?? 0) + count);
    }
  }
  for (const [name, sum] of sums) counts.set(`all ${name}`, sum);
}

/** Usage of a run: the sum of all runs where they were reported. */
function consumed(counts: Counts, name: (typeof iterated)[number]): number | undefined {
  const [top, all] = [counts.get(name), counts.get(`all ${name}`)];
  if (all === undefined || top === undefined) return all ?? top;
  return counts.get('isIterated') === 1 ? all : Math.max(top, all);
}

/** Code that the vendor ran is reported by its blocks where no counter has it. */
function takeCodeRun(counts: Counts, block: unknown): void {
  const { type, name } = objectOf(block) ?? {};
  if (type === 'server_tool_use' && /code_execution$/.test(textOf(name) ?? '')) counts.take('container', 1);
}

/** The vendor charges the time of a container, however often it is used, and none where searches and fetches use it. */
function codeUses(counts: Counts, searches: number, fetches: number): number | undefined {
  return searches + fetches > 0 ? undefined : counts.get('container');
}

/** `input_tokens` excludes tokens read from or written to the cache; `output_tokens` includes reasoning. */
function readUsage(counts: Counts): Reading {
  const input = consumed(counts, 'input');
  const output = consumed(counts, 'output');
  const usage: { -readonly [K in keyof Usage]: Usage[K] } = {};
  if (input !== undefined) usage.input = input;
  const read = consumed(counts, 'cacheRead');
  if (read !== undefined) usage.cache_read = read;
  Object.assign(usage, cacheWrites(counts));
  if (output !== undefined) Object.assign(usage, split(output, 'output', [['reasoning', counts.get('thinking')]]));
  const searches = counts.get('searches');
  if (searches !== undefined) usage.web_search = searches;
  const fetches = counts.get('fetches');
  if (fetches !== undefined) usage.web_fetch = fetches;
  const runs = counts.get('codeRuns') ?? codeUses(counts, searches ?? 0, fetches ?? 0);
  if (runs !== undefined) usage.code_execution = runs;
  return { usage, hasInput: input !== undefined, hasOutput: output !== undefined };
}

/** Written for an hour as far as the details report it; the rest is the five-minute cache. */
function cacheWrites(counts: Counts): Usage {
  const fiveMinutes = consumed(counts, 'cacheWrite5m');
  const hour = consumed(counts, 'cacheWrite1h');
  const details = fiveMinutes === undefined && hour === undefined ? undefined : (fiveMinutes ?? 0) + (hour ?? 0);
  const total = consumed(counts, 'cacheWrite') ?? details;
  if (total === undefined) return {};
  return split(total, 'cache_write_5m', [['cache_write_1h', hour]]);
}
