/** Meters the messages protocol: usage, end and errors, parsing only the frames that can carry them. Pure. */
import type { Services } from '../../../../core/prices.ts';
import type { Usage } from '../../../../core/usage.ts';
import { Counts, type Reading, split } from '../../counts.ts';
import { readFrame } from '../../frame.ts';
import { asLatin1, leadingEvent, textBytes, textPattern } from '../../glances.ts';
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../json.ts';
import type { Tap, Verdict } from '../../protocol.ts';
import { grantedServices } from '../../surcharges.ts';
import { TextMeter, textBytesIn } from '../../text-meter.ts';

const deltaNames = new Set(['text', 'thinking', 'partial_json']);
const deltaText = textPattern(...deltaNames);
const textNames = new Set(['text', 'thinking']);
const opaqueNames = new Set(['input']);
/** Blocks that the model wrote; results of the vendor's own tools are input. */
const writtenBlocks = new Set(['text', 'thinking', 'tool_use', 'server_tool_use']);
const silentEvents = new Set(['content_block_start', 'content_block_stop']);
/** So many pings after the reason to stop, and the end is not coming: it follows that reason at once. */
const pingsOfPatience = 2;

export class MessagesTap implements Tap {
  readonly text = new TextMeter();
  complete = false;
  error: JsonObject | undefined;
  upstreamId: string | undefined;
  finish: string | undefined;
  #tier: unknown;
  #speed: unknown;
  #region: unknown;
  readonly #counts = new Counts();
  /** Pings since the stream told its reason to stop; undefined: it has not. */
  #pingsAfterReason: number | undefined;

  get reading(): Reading {
    return this.#counts.reading(readUsage);
  }

  /** A speed is told beside the tier, and counts more. */
  get services(): Services {
    return grantedServices(this.#speed === 'fast' ? 'fast' : (this.#tier ?? this.#speed), this.#region);
  }

  frame(raw: Buffer): Verdict {
    const named = leadingEvent(raw);
    if (named === 'content_block_delta') {
      this.text.add(textBytes(asLatin1(raw), deltaText));
      return 'pass';
    }
    if (named === 'ping') return this.#ping();
    if (named !== undefined && silentEvents.has(named)) return 'pass';
    const read = readFrame(raw);
    return read === undefined ? 'pass' : this.payload(read.json, named);
  }

  whole(json: JsonObject): void {
    if (json['type'] === 'error') this.error = json;
    this.#message(json);
    const written = listOf(json['content']).filter((block) =>
      writtenBlocks.has(textOf(objectOf(block)?.['type']) ?? ''),
    );
    this.text.add(textBytesIn(written, textNames, opaqueNames));
    if (isObject(json['usage'])) this.text.reported();
    this.complete = true;
  }

  payload(payload: JsonObject, event: string | undefined): Verdict {
    const type = textOf(payload['type']) ?? event;
    if (type === 'content_block_delta') this.text.add(textBytesIn(payload['delta'], deltaNames));
    else if (type === 'message_start') this.#message(objectOf(payload['message']) ?? {});
    else if (type === 'ping') return this.#ping();
    else if (type === 'message_delta') this.#delta(payload);
    else if (type === 'message_stop') {
      this.complete = true;
      return 'last';
    } else if (type === 'error') {
      this.error = payload;
      return 'failed';
    }
    return 'pass';
  }

  /** Some upstreams keep a stream alive that has said all but its end. */
  #ping(): Verdict {
    if (this.#pingsAfterReason === undefined || ++this.#pingsAfterReason < pingsOfPatience) return 'pass';
    this.complete = true;
    return 'overdue';
  }

  #message(message: JsonObject): void {
    this.upstreamId ??= textOf(message['id']);
    this.finish = textOf(message['stop_reason']) ?? this.finish;
    this.#takeUsage(message['usage']);
  }

  #delta(payload: JsonObject): void {
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
  const created = objectOf(usage['cache_creation']) ?? {};
  counts.take('input', usage['input_tokens']);
  counts.take('cacheRead', usage['cache_read_input_tokens']);
  counts.take('cacheWrite', usage['cache_creation_input_tokens']);
  counts.take('cacheWrite5m', created['ephemeral_5m_input_tokens']);
  counts.take('cacheWrite1h', created['ephemeral_1h_input_tokens']);
  counts.take('output', usage['output_tokens']);
  counts.take('thinking', objectOf(usage['output_tokens_details'])?.['thinking_tokens']);
  const tools = objectOf(usage['server_tool_use']) ?? {};
  counts.take('searches', tools['web_search_requests']);
  counts.take('fetches', tools['web_fetch_requests']);
  takeIterations(counts, usage['iterations']);
}

/** Beta: runs of the model beside the answer itself (compaction). The counters on top leave them out. */
function takeIterations(counts: Counts, iterations: unknown): void {
  const sums: Record<string, number> = {};
  for (const iteration of listOf(iterations)) {
    if (!isObject(iteration) || iteration['type'] !== 'compaction') continue;
    const own = new Counts();
    own.take('extraInput', iteration['input_tokens']);
    own.take('extraCacheRead', iteration['cache_read_input_tokens']);
    own.take('extraCacheWrite', iteration['cache_creation_input_tokens']);
    own.take('extraOutput', iteration['output_tokens']);
    for (const name of ['extraInput', 'extraCacheRead', 'extraCacheWrite', 'extraOutput'])
      sums[name] = (sums[name] ?? 0) + (own.get(name) ?? 0);
  }
  for (const [name, sum] of Object.entries(sums)) counts.take(name, sum);
}

/** `input_tokens` excludes what was read from or written to the cache; `output_tokens` includes thinking. */
function readUsage(counts: Counts): Reading {
  const input = counts.get('input');
  const output = counts.get('output');
  const usage: { -readonly [K in keyof Usage]: Usage[K] } = {};
  if (input !== undefined) usage.input = input + (counts.get('extraInput') ?? 0);
  const read = counts.get('cacheRead');
  if (read !== undefined) usage.cache_read = read + (counts.get('extraCacheRead') ?? 0);
  Object.assign(usage, cacheWrites(counts));
  if (output !== undefined)
    Object.assign(
      usage,
      split(output + (counts.get('extraOutput') ?? 0), 'output', [['reasoning', counts.get('thinking')]]),
    );
  const searches = counts.get('searches');
  if (searches !== undefined) usage.web_search = searches;
  const fetches = counts.get('fetches');
  if (fetches !== undefined) usage.web_fetch = fetches;
  return { usage, hasInput: input !== undefined, hasOutput: output !== undefined };
}

/** Written for an hour as far as the details say so; everything else is the five-minute cache. */
function cacheWrites(counts: Counts): Usage {
  const fiveMinutes = counts.get('cacheWrite5m');
  const hour = counts.get('cacheWrite1h');
  const details = fiveMinutes === undefined && hour === undefined ? undefined : (fiveMinutes ?? 0) + (hour ?? 0);
  const total = counts.get('cacheWrite') ?? details;
  if (total === undefined) return {};
  return split(total + (counts.get('extraCacheWrite') ?? 0), 'cache_write_5m', [['cache_write_1h', hour]]);
}
