/** Shared parts of usage meters of vendors' own protocols: their state, and reading frames. */
import type { JsonObject } from '../../../core/json/json.ts';
import { Counts, type Reading } from './counts.ts';
import { readFrame } from './frame.ts';
import { TextMeter } from './text-meter.ts';
import type { UsageMeter, Verdict } from './usage-meter.ts';

/** A usage meter of answers of JSON frames, by what a protocol says of each of them. */
export abstract class FrameMeter implements UsageMeter {
  readonly text = new TextMeter();
  upstreamId: string | undefined;
  complete = false;
  error: JsonObject | undefined;
  finish: string | undefined;
  protected readonly counts = new Counts();

  abstract get reading(): Reading;
  abstract payload(json: JsonObject, event: string | undefined): Verdict;
  abstract whole(json: JsonObject): void;

  frame(raw: Buffer): Verdict {
    const read = readFrame(raw);
    return read === undefined ? 'pass' : this.payload(read.json, read.event);
  }
}

/** The usage by the counts `input` and `output` alone. */
export function readSides(counts: Counts): Reading {
  const [input, output] = [counts.get('input'), counts.get('output')];
  return {
    usage: { ...(input === undefined ? {} : { input }), ...(output === undefined ? {} : { output }) },
    hasInput: input !== undefined,
    hasOutput: output !== undefined,
  };
}
