/** Meters answers of `/api/chat`: the last line has the counts. Pure. */
import { type JsonObject, textOf } from '../../core/json/json.ts';
import { Counts, type Reading } from '../common/wire/counts.ts';
import { readFrame } from '../common/wire/frame.ts';
import { TextMeter, textBytesIn } from '../common/wire/text-meter.ts';
import type { UsageMeter, Verdict } from '../common/wire/usage-meter.ts';

const textNames = new Set(['content', 'thinking', 'name']);
const callNames = new Set(['arguments']);

export class OllamaUsageMeter implements UsageMeter {
  readonly text = new TextMeter();
  readonly upstreamId = undefined;
  complete = false;
  error: JsonObject | undefined;
  finish: string | undefined;
  readonly #counts = new Counts();

  get reading(): Reading {
    return this.#counts.reading(readUsage);
  }

  frame(raw: Buffer): Verdict {
    const read = readFrame(raw);
    return read === undefined ? 'pass' : this.payload(read.json);
  }

  payload(json: JsonObject): Verdict {
    if (json['error'] !== undefined) {
      this.error = json;
      return 'failed';
    }
    this.text.add(textBytesIn(json['message'], textNames, callNames));
    if (json['done'] !== true) return 'pass';
    this.finish = textOf(json['done_reason']);
    this.#counts.take('prompt', json['prompt_eval_count']);
    this.#counts.take('answer', json['eval_count']);
    if (this.#counts.get('answer') !== undefined) this.text.reported();
    this.complete = true;
    return 'last';
  }

  whole(json: JsonObject): void {
    this.payload(json);
  }
}

/** Thinking is part of the answer's count. A prompt that is wholly cached is not counted by old versions. */
function readUsage(counts: Counts): Reading {
  const [input, output] = [counts.get('prompt'), counts.get('answer')];
  return {
    usage: { ...(input === undefined ? {} : { input }), ...(output === undefined ? {} : { output }) },
    hasInput: input !== undefined,
    hasOutput: output !== undefined,
  };
}
