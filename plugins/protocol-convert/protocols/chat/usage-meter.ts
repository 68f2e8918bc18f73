/** Meters chat completions: usage, end and errors, parsing only the frames that can carry them. Pure. */

import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../../../core/json/json.ts';
import type { Call } from '../../../common/domain/calls.ts';
import type { Services } from '../../../common/domain/prices.ts';
import { readCount } from '../../../common/domain/usage.ts';
import { Counts, type Reading } from '../../../common/wire/counts.ts';
import { readFrame } from '../../../common/wire/frame.ts';
import { type CostOf, readCounters, takeCosts } from '../../../common/wire/readings.ts';
import { TextMeter, textBytesIn } from '../../../common/wire/text-meter.ts';
import type { UsageMeter, UsageMeterOptions, Verdict } from '../../../common/wire/usage-meter.ts';
import { globalServices, grantedServices } from '../../metering/surcharges.ts';
import { asLatin1, RepeatedFrame, textBytes, textPattern, valuePattern } from '../../request/fast-scan.ts';
import { isFailure } from './finish.ts';
import { saidIn, type ToolRuns, takeRuns } from './tool-runs.ts';

/** Markers of frames that must be parsed. */
const matters = valuePattern('usage', 'finish_reason', 'error', 'executed_tools');
/** The same, until a stream has given its audio's id. */
const mattersBeforeAudio = valuePattern('usage', 'finish_reason', 'error', 'audio', 'annotations', 'executed_tools');
/** The same for a request that lets the vendor search. */
const mattersOfSearches = valuePattern(
  ...['usage', 'finish_reason', 'error', 'audio', 'annotations', 'web_search', 'executed_tools', 'tool_calls'],
);
const deltaText = textPattern('content', 'reasoning_content', 'reasoning', 'arguments', 'text', 'refusal', 'input');
const textNames = new Set([
  'content',
  'reasoning_content',
  'reasoning',
  'refusal',
  'arguments',
  'text',
  'thinking',
  'input',
]);
const transcriptText = textPattern('transcript');
const transcriptNames = new Set(['transcript']);
const done = Buffer.from('[DONE]');
/** `data: [DONE]` with its line ends. */
const longestDoneFrame = 24;

export class ChatUsageMeter implements UsageMeter {
  readonly text = new TextMeter();
  error: JsonObject | undefined;
  hidesError = false;
  upstreamId: string | undefined;
  finish: string | undefined;
  #tier: unknown;
  readonly #counts = new Counts();
  #repeated: RepeatedFrame | undefined;
  readonly #choices: number;
  readonly #withholdUsage: boolean;
  readonly #costOf: CostOf | undefined;
  #finished: Set<unknown> | undefined;
  #runs: ToolRuns | undefined;
  #choiceUsages: Map<unknown, JsonObject> | undefined;
  #textBytes = 0;
  #transcriptBytes = 0;
  #isDone = false;
  #isFirst = true;
  #hasChoices = false;
  readonly #issued: UsageMeterOptions['issued'];
  #matters = matters;
  readonly #searches: boolean;
  /** Bytes of text of the last frame, if it has nothing else that is metered. */
  #last: number | undefined;

  constructor(call: Call, options: UsageMeterOptions) {
    this.#choices = call.choices;
    this.#withholdUsage = options.withholdUsage;
    this.#issued = options.issued;
    this.#searches = (call.toolCalls ?? 0) > 0;
    if (this.#searches) this.#matters = mattersOfSearches;
    else if (options.issued !== undefined) this.#matters = mattersBeforeAudio;
    this.#costOf = options.costOf;
  }

  /** `[DONE]`, or, for vendors that do not send it, a finish reason for each choice. */
  get complete(): boolean {
    return this.#isDone || (this.#finished?.size ?? 0) >= this.#choices;
  }

  get reading(): Reading {
    return this.#counts.reading(readUsage, this.#costOf);
  }

  get services(): Services {
    return this.#tier === undefined ? globalServices : grantedServices(this.#tier, 'global');
  }

  frame(raw: Buffer): Verdict {
    if (raw.length <= longestDoneFrame && raw.includes(done)) {
      this.#isDone = true;
      if (this.#hasChoices || this.text.bytes > 0) return 'last';
      this.error ??= { error: { message: 'The answer is empty.', code: 502 } };
      this.hidesError = true;
      return 'failed';
    }
    const latin1 = asLatin1(raw);
    this.#repeated ??= new RepeatedFrame();
    const repeated = this.#repeated.textBytes(latin1);
    if (repeated > 0) {
      this.#addText(repeated, 0);
      return 'pass';
    }
    const text = this.#repeated.scan(latin1, deltaText);
    // Beside content, a transcript repeats the content.
    this.#addText(text, text === 0 ? textBytes(latin1, transcriptText) : 0);
    if (!this.#isFirst && !this.#matters.test(latin1)) {
      this.#repeated.remember(latin1);
      return 'pass';
    }
    const read = readFrame(raw);
    return read === undefined ? 'pass' : this.#take(read.json);
  }

  payload(json: JsonObject): Verdict {
    const reports = this.text.reports;
    const [text, transcript] = [textBytesIn(json['choices'], textNames), textBytesIn(json['choices'], transcriptNames)];
    this.#addText(text, transcript);
    const verdict = this.#take(json);
    this.#last = verdict === 'pass' && this.text.reports === reports && transcript === 0 ? text : undefined;
    return verdict;
  }

  again(growth: number): boolean {
    if (this.#last === undefined) return false;
    this.#last += growth;
    this.#addText(this.#last, 0);
    return true;
  }

  whole(json: JsonObject): void {
    this.upstreamId = textOf(json['id']);
    this.#tier = json['service_tier'];
    this.#meterChoices(json);
    this.#addText(textBytesIn(json['choices'], textNames), textBytesIn(json['choices'], transcriptNames));
    this.#takeUsage(json);
    if (!this.#hasChoices || this.finish !== 'stop')
      this.error = json['error'] && !hasChoices(json) ? json : (this.#failureIn(json) ?? emptiness(json));
    this.#isDone = true;
  }

  #take(payload: JsonObject): Verdict {
    this.#isFirst = false;
    this.upstreamId ??= textOf(payload['id']);
    this.#tier = payload['service_tier'] ?? this.#tier;
    this.#meterChoices(payload);
    const reported = this.#takeUsage(payload);
    const failure = payload['error'] ? payload : this.#failureIn(payload);
    if (failure !== undefined) {
      this.error = failure;
      this.hidesError = failure !== payload;
      return 'error';
    }
    const isUsageAlone = reported && Array.isArray(payload['choices']) && payload['choices'].length === 0;
    return isUsageAlone && this.#withholdUsage ? 'withhold' : 'pass';
  }

  /** An audio's transcript may repeat the content: the longer of the two counts. */
  #addText(text: number, transcript: number): void {
    const before = Math.max(this.#textBytes, this.#transcriptBytes);
    this.#textBytes += text;
    this.#transcriptBytes += transcript;
    this.text.add(Math.max(this.#textBytes, this.#transcriptBytes) - before);
  }

  #meterChoices(payload: JsonObject): void {
    const choices = listOf(payload['choices']);
    if (choices.length > 0) this.#hasChoices = true;
    if (this.#searches && hasSearched(payload, choices)) this.#counts.take('searched', 1);
    for (const choice of choices) {
      const said = saidIn(choice);
      if (said['executed_tools'] !== undefined || said['tool_calls'] !== undefined)
        this.#runs = takeRuns(this.#counts, said, this.#runs);
    }
    if (this.#issued !== undefined && choices.length > 0) this.#recordIds(this.#issued, choices);
    for (const choice of choices) {
      const reason = textOf(objectOf(choice)?.['finish_reason']);
      if (reason === undefined) continue;
      this.finish = reason;
      this.#finished ??= new Set();
      this.#finished.add(objectOf(choice)?.['index'] ?? 0);
    }
  }

  /** Some vendors tell a failure by the reason to stop, with or without an error beside it. */
  #failureIn(payload: JsonObject): JsonObject | undefined {
    if (!isFailure(this.finish)) return undefined;
    const failed = listOf(payload['choices']).find((choice) => isFailure(objectOf(choice)?.['finish_reason']));
    if (failed === undefined) return undefined;
    const unsaid = { message: 'The model failed to answer.', code: 502 };
    return withUsage({ error: objectOf(failed)?.['error'] || unsaid }, payload);
  }

  #recordIds(issued: NonNullable<UsageMeterOptions['issued']>, choices: readonly unknown[]): void {
    issued({ choices });
    // The id arrives with the first frame of an audio; later frames are large.
    if (this.#choices !== 1 || this.#searches) return;
    for (const choice of choices)
      if (objectOf(objectOf(choice)?.['delta'])?.['audio'] !== undefined) this.#matters = matters;
  }

  /** Some vendors report each choice in it. */
  #usageOfChoices(payload: JsonObject): JsonObject | undefined {
    let latest: JsonObject | undefined;
    for (const choice of listOf(payload['choices'])) {
      const usage = objectOf(objectOf(choice)?.['usage']);
      if (usage === undefined) continue;
      latest = usage;
      this.#choiceUsages ??= new Map();
      this.#choiceUsages.set(objectOf(choice)?.['index'] ?? 0, usage);
    }
    const usages = latest === undefined ? [] : [...this.#choiceUsages!.values()];
    return usages.length > 1 ? sumOfChoices(usages) : latest;
  }

  #takeUsage(payload: JsonObject): boolean {
    const usage =
      objectOf(payload['usage']) ?? objectOf(objectOf(payload['x_groq'])?.['usage']) ?? this.#usageOfChoices(payload);
    if (usage === undefined) return false;
    takeCounts(this.#counts, usage);
    this.text.reported();
    return true;
  }
}

/** The prompt once, and the answers of all choices. */
function sumOfChoices(usages: readonly JsonObject[]): JsonObject {
  const counts = (name: string) => usages.map((usage) => readCount(usage[name]) ?? 0);
  const completion = counts('completion_tokens').reduce((sum, count) => sum + count, 0);
  const prompt = Math.max(...counts('prompt_tokens'));
  return { ...usages[0], prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion };
}

function hasChoices({ choices }: JsonObject): boolean {
  return Array.isArray(choices) && choices.length > 0;
}

/** The error of a whole answer without a choice. */
function emptiness(json: JsonObject): JsonObject | undefined {
  return json['choices'] === undefined || hasChoices(json)
    ? undefined
    : withUsage({ error: { message: 'The answer is empty.', code: 502 } }, json);
}

function withUsage(error: JsonObject, { usage }: JsonObject): JsonObject {
  return isObject(usage) ? { ...error, usage } : error;
}

/** Members of the official report, then members that some vendors use for the same counter. */
function takeCounts(counts: Counts, usage: JsonObject): void {
  counts.take('prompt', usage['prompt_tokens']);
  counts.take('completion', usage['completion_tokens']);
  counts.take('total', usage['total_tokens']);
  for (const name in usage) {
    if (sums.has(name)) continue;
    takeDetails(counts, usage);
    return;
  }
}

const sums = new Set(['prompt_tokens', 'completion_tokens', 'total_tokens']);

function takeDetails(counts: Counts, usage: JsonObject): void {
  const prompt = objectOf(usage['prompt_tokens_details']) ?? objectOf(usage['prompt_token_details']) ?? {};
  const completion = objectOf(usage['completion_tokens_details']) ?? objectOf(usage['completion_token_details']) ?? {};
  counts.take('cached', prompt['cached_tokens'] ?? usage['prompt_cache_hit_tokens'] ?? usage['cached_tokens']);
  counts.take('cacheWrite', prompt['cache_write_tokens'] ?? usage['cache_creation_input_tokens']);
  counts.take('audioIn', prompt['audio_tokens']);
  counts.take('audioSeconds', usage['prompt_audio_seconds']);
  counts.take('imageIn', prompt['image_tokens']);
  counts.take('reasoning', completion['reasoning_tokens'] ?? usage['reasoning_tokens']);
  counts.take('audioOut', completion['audio_tokens']);
  counts.take('imageOut', completion['image_tokens']);
  takeSearches(counts, usage);
  takeCosts(counts, usage);
}

/**
 * `prompt_tokens` includes cached, written, sound and image tokens, `completion_tokens` includes reasoning and sound.
 * Some vendors leave one of these out of the sum; some report thinking, or sound of a known length, in the total alone.
 */
function readUsage(counts: Counts, costOf: CostOf | undefined): Reading {
  const [input, output, total] = [counts.get('prompt'), counts.get('completion'), counts.get('total')];
  if (counts.size === sums.size && input !== undefined && output !== undefined && total === input + output)
    return { usage: { input, output }, hasInput: true, hasOutput: true };
  const counters = {
    input,
    output,
    total,
    inputDetails: [
      { class: 'cache_read', count: counts.get('cached') },
      { class: 'cache_write_5m', count: counts.get('cacheWrite') },
      { class: 'input_audio', count: counts.get('audioIn') },
      { class: 'input_image', count: counts.get('imageIn') },
    ],
    outputDetails: [
      { class: 'reasoning', count: counts.get('reasoning') },
      { class: 'output_audio', count: counts.get('audioOut') },
      { class: 'output_image', count: counts.get('imageOut') },
    ],
    unnamed: (counts.get('audioSeconds') ?? 0) > 0 ? 'input_audio' : 'reasoning',
  } as const;
  const reading = readCounters(counters, counts, costOf);
  return withTools(reading, counts);
}

/** Where a vendor has a counter, what its answer shows is not counted again. */
function withTools(reading: Reading, counts: Counts): Reading {
  const [executed, builtin] = [counts.get('executedSearches'), counts.get('builtinSearches')];
  const shown = executed === undefined ? builtin : executed + (builtin ?? 0);
  const searches = counts.get('searches') ?? shown ?? counts.get('searched');
  const calls = counts.get('otherCalls') ?? counts.get('executedOthers');
  const fetches = counts.get('executedFetches');
  const code = counts.get('executedCode');
  if ((searches ?? calls ?? fetches ?? code) === undefined) return reading;
  const tools = {
    ...(searches === undefined ? {} : { web_search: searches }),
    ...(calls === undefined ? {} : { call: calls }),
    ...(fetches === undefined ? {} : { web_fetch: fetches }),
    ...(code === undefined ? {} : { code_execution: code }),
  };
  return { ...reading, usage: { ...reading.usage, ...tools } };
}

/** Runs of the vendor's own tools, by the names that vendors use. */
function takeSearches(counts: Counts, usage: JsonObject): void {
  const details = objectOf(usage['server_side_tool_usage_details']) ?? {};
  const tools = objectOf(usage['server_tool_use']) ?? objectOf(usage['server_tool_use_details']) ?? {};
  counts.take('searches', tools['web_search_requests'] ?? details['web_search_calls'] ?? usage['num_search_queries']);
  // Each source that was read is charged, where the vendor counts those.
  if ((readCount(usage['num_sources_used']) ?? 0) > 0) counts.take('searches', usage['num_sources_used']);
  for (const [name, plugin] of Object.entries(objectOf(usage['plugins']) ?? {}))
    counts.take(name === 'search' || name === 'web' ? 'searches' : 'otherCalls', objectOf(plugin)?.['count']);
}

/** An answer that cites pages, or comes with what a search found, without a counter. */
function hasSearched(payload: JsonObject, choices: readonly unknown[]): boolean {
  if (listOf(payload['web_search']).length > 0) return true;
  return choices.some((choice) => {
    return listOf(saidIn(choice)['annotations']).some((one) => objectOf(one)?.['type'] === 'url_citation');
  });
}
