/**
 * Meters answers of `/api/chat`: the last line has the counts. Thinking is part of the answer's count. A prompt that is wholly
 * cached is not counted by old versions. Pure.
 */
import { type JsonObject, textOf } from '../../core/json/json.ts';
import type { Reading } from '../common/wire/counts.ts';
import { FrameMeter, readSides } from '../common/wire/frame-meter.ts';
import { textBytesIn } from '../common/wire/text-meter.ts';
import type { Verdict } from '../common/wire/usage-meter.ts';

const textNames = new Set(['content', 'thinking', 'name']);
const callNames = new Set(['arguments']);

export class OllamaUsageMeter extends FrameMeter {
  get reading(): Reading {
    return this.counts.reading(readSides);
  }

  payload(json: JsonObject): Verdict {
    if (json['error'] !== undefined) {
      this.error = json;
      return 'failed';
    }
    this.text.add(textBytesIn(json['message'], textNames, callNames));
    if (json['done'] !== true) return 'pass';
    this.finish = textOf(json['done_reason']);
    this.counts.take('input', json['prompt_eval_count']);
    this.counts.take('output', json['eval_count']);
    if (this.counts.get('output') !== undefined) this.text.reported();
    this.complete = true;
    return 'last';
  }

  whole(json: JsonObject): void {
    this.payload(json);
  }
}
