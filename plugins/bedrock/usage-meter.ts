/** Meters answers of Converse, and of Nova, which names the caches otherwise: tokens read from and written to a cache are counted beside the input. Pure. */
import { type JsonObject, listOf, objectOf, textOf } from '../../core/json/json.ts';
import { readCount } from '../common/domain/usage.ts';
import type { Counts, Reading } from '../common/wire/counts.ts';
import { FrameMeter } from '../common/wire/frame-meter.ts';
import { textBytesIn } from '../common/wire/text-meter.ts';
import type { Verdict } from '../common/wire/usage-meter.ts';

const textNames = new Set(['text', 'input', 'name']);
const jsonNames = new Set(['input']);

export class ConverseUsageMeter extends FrameMeter {
  get reading(): Reading {
    return this.counts.reading(readUsage);
  }

  payload(json: JsonObject, event: string | undefined): Verdict {
    if (objectOf(json['error']) !== undefined) {
      this.error = json;
      return 'failed';
    }
    if (event === 'contentBlockStart' || event === 'contentBlockDelta')
      this.text.add(textBytesIn(json, textNames, jsonNames));
    if (event === 'messageStop') this.#ended(json);
    if (event !== 'metadata') return 'pass';
    this.#take(json);
    return 'last';
  }

  whole(json: JsonObject): void {
    const output = objectOf(json['output']);
    if (output === undefined) {
      this.error = { error: { message: textOf(json['message']) ?? 'The model failed to answer.' } };
      return;
    }
    this.text.add(textBytesIn(output, textNames, jsonNames));
    this.#ended(json);
    this.#take(json);
  }

  #ended(json: JsonObject): void {
    this.finish = textOf(json['stopReason']);
    this.complete = true;
  }

  #take(json: JsonObject): void {
    const usage = objectOf(json['usage']) ?? {};
    for (const name of ['inputTokens', 'outputTokens', 'cacheReadInputTokens', 'cacheWriteInputTokens'])
      this.counts.take(name, usage[name]);
    this.counts.take('cacheReadInputTokens', usage['cacheReadInputTokenCount']);
    this.counts.take('cacheWriteInputTokens', usage['cacheWriteInputTokenCount']);
    const long = listOf(usage['cacheDetails']).flatMap((entry) => {
      const { ttl, inputTokens } = objectOf(entry) ?? {};
      return ttl === '1h' ? (readCount(inputTokens) ?? 0) : [];
    });
    if (long.length > 0)
      this.counts.take(
        'longWrites',
        long.reduce((sum, count) => sum + count, 0),
      );
    if (this.counts.get('outputTokens') !== undefined) this.text.reported();
  }
}

function readUsage(counts: Counts): Reading {
  const [input, output] = [counts.get('inputTokens'), counts.get('outputTokens')];
  const [read, written] = [counts.get('cacheReadInputTokens'), counts.get('cacheWriteInputTokens')];
  const long = Math.min(counts.get('longWrites') ?? 0, written ?? 0);
  return {
    usage: {
      ...(input === undefined ? {} : { input }),
      ...(read === undefined || read === 0 ? {} : { cache_read: read }),
      ...(written === undefined || written === long ? {} : { cache_write_5m: written - long }),
      ...(long === 0 ? {} : { cache_write_1h: long }),
      ...(output === undefined ? {} : { output }),
    },
    hasInput: input !== undefined,
    hasOutput: output !== undefined,
  };
}
