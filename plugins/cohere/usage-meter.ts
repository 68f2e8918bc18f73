/** Meters answers of `/v2/chat`: what the vendor bills, where it says so. Pure. */
import { type JsonObject, objectOf, textOf } from '../../core/json/json.ts';
import type { Counts, Reading } from '../common/wire/counts.ts';
import { FrameMeter } from '../common/wire/frame-meter.ts';
import { type CostOf, readCounters } from '../common/wire/readings.ts';
import { textBytesIn } from '../common/wire/text-meter.ts';
import type { UsageMeterOptions, Verdict } from '../common/wire/usage-meter.ts';

const textNames = new Set(['text', 'thinking', 'tool_plan', 'arguments', 'name']);
/** Ends that are the vendor's fault. */
const failures = new Set(['ERROR', 'TIMEOUT']);

export class CohereUsageMeter extends FrameMeter {
  readonly #costOf: CostOf | undefined;

  constructor({ costOf }: UsageMeterOptions) {
    super();
    this.#costOf = costOf;
  }

  get reading(): Reading {
    return this.counts.reading(readUsage, this.#costOf);
  }

  payload(json: JsonObject): Verdict {
    const delta = objectOf(json['delta']) ?? {};
    if (json['type'] === 'message-start') this.upstreamId = textOf(json['id']);
    if (json['type'] !== 'citation-start') this.text.add(textBytesIn(delta['message'], textNames));
    if (json['type'] === undefined && textOf(json['message']) !== undefined) return this.#failed(json);
    if (json['type'] !== 'message-end') return 'pass';
    return this.#end(delta) ? 'last' : this.#failed(delta);
  }

  whole(json: JsonObject): void {
    this.upstreamId = textOf(json['id']);
    const message = objectOf(json['message']);
    if (message === undefined) {
      this.error = json;
      return;
    }
    this.text.add(textBytesIn({ ...message, citations: undefined }, textNames));
    if (!this.#end(json)) this.#failed(json);
  }

  #end(ended: JsonObject): boolean {
    this.finish = textOf(ended['finish_reason']);
    const usage = objectOf(ended['usage']) ?? {};
    const [billed, tokens] = [objectOf(usage['billed_units']) ?? {}, objectOf(usage['tokens']) ?? {}];
    this.counts.take('input', billed['input_tokens'] ?? tokens['input_tokens']);
    this.counts.take('output', billed['output_tokens'] ?? tokens['output_tokens']);
    this.counts.take('cached', usage['cached_tokens']);
    if (this.counts.get('output') !== undefined) this.text.reported();
    if (failures.has(this.finish ?? '')) return false;
    this.complete = true;
    return true;
  }

  #failed(ended: JsonObject): Verdict {
    this.error = { error: { message: textOf(ended['error']) ?? textOf(ended['message']) ?? 'The model failed.' } };
    return 'failed';
  }
}

function readUsage(counts: Counts, costOf: CostOf | undefined): Reading {
  const counters = {
    input: counts.get('input'),
    output: counts.get('output'),
    total: undefined,
    inputDetails: [{ class: 'cache_read', count: counts.get('cached') }],
    outputDetails: [],
    unnamed: 'reasoning',
  } as const;
  return readCounters(counters, counts, costOf);
}
