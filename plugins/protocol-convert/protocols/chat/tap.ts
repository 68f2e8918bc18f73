/** Meters chat completions: usage, end and errors, parsing only the frames that can carry them. Pure. */
import type { Services } from '../../../../core/prices.ts';
import type { Call } from '../../../../core/vocabulary.ts';
import { Counts, type Reading, split } from '../../counts.ts';
import { readFrame } from '../../frame.ts';
import { asLatin1, textBytes, textPattern, valuePattern } from '../../glances.ts';
import { type JsonObject, listOf, objectOf, textOf } from '../../json.ts';
import type { Tap, TapOptions, Verdict } from '../../protocol.ts';
import { grantedServices } from '../../surcharges.ts';
import { TextMeter, textBytesIn } from '../../text-meter.ts';

/** What makes a frame worth parsing. */
const matters = valuePattern('usage', 'finish_reason', 'error');
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
const done = Buffer.from('[DONE]');
/** `data: [DONE]` with its line ends. */
const longestDoneFrame = 24;

export class ChatTap implements Tap {
  readonly text = new TextMeter();
  error: JsonObject | undefined;
  upstreamId: string | undefined;
  finish: string | undefined;
  #tier: unknown;
  readonly #counts = new Counts();
  readonly #choices: number;
  readonly #withholdUsage: boolean;
  readonly #finished = new Set<unknown>();
  #isDone = false;
  #isFirst = true;

  constructor(call: Call, options: TapOptions) {
    this.#choices = call.choices;
    this.#withholdUsage = options.withholdUsage;
  }

  /** `[DONE]`, or, for vendors that send none, a finish reason for each choice. */
  get complete(): boolean {
    return this.#isDone || this.#finished.size >= this.#choices;
  }

  get reading(): Reading {
    return this.#counts.reading(readUsage);
  }

  get services(): Services {
    return grantedServices(this.#tier, 'global');
  }

  frame(raw: Buffer): Verdict {
    if (raw.length <= longestDoneFrame && raw.includes(done)) {
      this.#isDone = true;
      return 'last';
    }
    const latin1 = asLatin1(raw);
    this.text.add(textBytes(latin1, deltaText));
    if (!this.#isFirst && !matters.test(latin1)) return 'pass';
    const read = readFrame(raw);
    return read === undefined ? 'pass' : this.#take(read.json);
  }

  payload(json: JsonObject): Verdict {
    this.text.add(textBytesIn(json['choices'], textNames));
    return this.#take(json);
  }

  whole(json: JsonObject): void {
    this.upstreamId = textOf(json['id']);
    this.#tier = json['service_tier'];
    this.#readChoices(json);
    this.text.add(textBytesIn(json['choices'], textNames));
    this.#takeUsage(json);
    if (json['error'] && !Array.isArray(json['choices'])) this.error = json;
    this.#isDone = true;
  }

  #take(payload: JsonObject): Verdict {
    this.#isFirst = false;
    this.upstreamId ??= textOf(payload['id']);
    this.#tier = payload['service_tier'] ?? this.#tier;
    this.#readChoices(payload);
    const reported = this.#takeUsage(payload);
    if (payload['error']) {
      this.error = payload;
      return 'error';
    }
    const isUsageAlone = reported && Array.isArray(payload['choices']) && payload['choices'].length === 0;
    return isUsageAlone && this.#withholdUsage ? 'withhold' : 'pass';
  }

  #readChoices(payload: JsonObject): void {
    for (const choice of listOf(payload['choices'])) {
      const reason = textOf(objectOf(choice)?.['finish_reason']);
      if (reason === undefined) continue;
      this.finish = reason;
      this.#finished.add(objectOf(choice)?.['index'] ?? 0);
    }
  }

  #takeUsage(payload: JsonObject): boolean {
    const usage = objectOf(payload['usage']) ?? objectOf(objectOf(payload['x_groq'])?.['usage']);
    if (usage === undefined) return false;
    takeCounts(this.#counts, usage);
    this.text.reported();
    return true;
  }
}

/** Names of the official report, then those that some vendors use for the same thing. */
function takeCounts(counts: Counts, usage: JsonObject): void {
  const prompt = objectOf(usage['prompt_tokens_details']) ?? {};
  const completion = objectOf(usage['completion_tokens_details']) ?? {};
  counts.take('prompt', usage['prompt_tokens']);
  counts.take('completion', usage['completion_tokens']);
  counts.take('total', usage['total_tokens']);
  counts.take('cached', prompt['cached_tokens'] ?? usage['prompt_cache_hit_tokens'] ?? usage['cached_tokens']);
  counts.take('cacheWrite', prompt['cache_write_tokens'] ?? usage['cache_creation_input_tokens']);
  counts.take('audioIn', prompt['audio_tokens']);
  counts.take('imageIn', prompt['image_tokens']);
  counts.take('reasoning', completion['reasoning_tokens']);
  counts.take('audioOut', completion['audio_tokens']);
  counts.take('imageOut', completion['image_tokens']);
}

/**
 * `prompt_tokens` includes cached, written, sound and image tokens, `completion_tokens` includes reasoning and sound.
 * One vendor leaves reasoning out of the completion: then the total says so.
 */
export function readUsage(counts: Counts): Reading {
  const prompt = counts.get('prompt');
  const completion = completionOf(counts, prompt);
  const input =
    prompt === undefined
      ? {}
      : split(prompt, 'input', [
          ['cache_read', counts.get('cached')],
          ['cache_write_5m', counts.get('cacheWrite')],
          ['input_audio', counts.get('audioIn')],
          ['input_image', counts.get('imageIn')],
        ]);
  const output =
    completion === undefined
      ? {}
      : split(completion, 'output', [
          ['reasoning', counts.get('reasoning')],
          ['output_audio', counts.get('audioOut')],
          ['output_image', counts.get('imageOut')],
        ]);
  return { usage: { ...input, ...output }, hasInput: prompt !== undefined, hasOutput: completion !== undefined };
}

function completionOf(counts: Counts, prompt: number | undefined): number | undefined {
  const completion = counts.get('completion');
  const total = counts.get('total');
  if (total === undefined || prompt === undefined) return completion;
  if (completion === undefined) return total >= prompt ? total - prompt : undefined;
  const reasoning = counts.get('reasoning') ?? 0;
  return total - prompt - completion === reasoning ? completion + reasoning : completion;
}
