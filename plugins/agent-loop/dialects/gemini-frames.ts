/** A run as one stream of generate-content, as server-sent events or as a JSON array. Pure. */
import { isObject, type JsonObject } from '../../../core/json/json.ts';
import { formatFrame } from '../../common/kit/sse.ts';
import type { Sources } from '../search/sources.ts';
import type { End, Frames, ToolDone } from '../talk.ts';
import { candidateOf, partsOf, textIn } from './gemini-parts.ts';
import { groundingOf } from './gemini-search.ts';
import { summed } from './sums.ts';

interface FramesOptions {
  readonly isOwn: (part: JsonObject) => boolean;
  readonly isArray: boolean;
  readonly sources: Sources;
  /** What the client sees of a call. */
  readonly stepsOf: (done: ToolDone) => JsonObject[];
}

export class GeminiFrames implements Frames {
  readonly #options: FramesOptions;
  /** The answer as the client has it. */
  #text = '';
  /** Members of every frame. */
  #head: JsonObject | undefined;
  #parts: JsonObject[] = [];
  #last: JsonObject | undefined;
  #hasFailed = false;
  /** What earlier turns have used. */
  #before: unknown;
  #candidate: JsonObject = {};
  #hasWritten = false;

  constructor(options: FramesOptions) {
    this.#options = options;
  }

  frame(_event: string | undefined, data: JsonObject | undefined): string {
    if (data === undefined) return '';
    if ('error' in data) {
      this.#hasFailed = true;
      return this.#written(data) + (this.#options.isArray ? ']' : '');
    }
    const { candidates: _all, usageMetadata, ...head } = data;
    this.#head ??= head;
    const candidate = candidateOf(data);
    const usage = usageMetadata ?? this.#last?.['usageMetadata'];
    this.#last = { ...data, ...(usage === undefined ? {} : { usageMetadata: usage }) };
    const parts = partsOf(data);
    this.#parts.push(...parts);
    this.#candidate = { ...this.#candidate, ...candidate };
    const shown = parts.filter((part) => !this.#options.isOwn(part));
    if (shown.length === 0) return '';
    this.#text += shown.map((part) => textIn(part) ?? '').join('');
    const { finishReason: _end, ...rest } = candidate;
    return this.#frameOf({ ...rest, content: { role: 'model', parts: shown } }, usageMetadata);
  }

  answer(): JsonObject | undefined {
    const [last, parts, candidate] = [this.#last, this.#parts, this.#candidate];
    this.#last = undefined;
    this.#parts = [];
    if (this.#hasFailed || last === undefined) return undefined;
    this.#before = summed(this.#before, last['usageMetadata']);
    return { ...last, candidates: [{ ...candidate, content: { role: 'model', parts } }] };
  }

  called(): string {
    return '';
  }

  done(done: ToolDone): string {
    const parts = this.#options.stepsOf(done);
    return parts.length === 0 ? '' : this.#frameOf({ index: 0, content: { role: 'model', parts } }, undefined);
  }

  asked(): string {
    return '';
  }

  end(end: End): string {
    const { content: _parts, ...candidate } = this.#candidate;
    const finish = end === 'bound' ? { finishReason: 'TOO_MANY_TOOL_CALLS' } : {};
    const grounding = groundingOf([this.#text], this.#options.sources);
    const last = { ...candidate, content: { role: 'model', parts: [{ text: '' }] }, ...grounding, ...finish };
    const usage = { usageMetadata: this.#before ?? {} };
    return this.#written({ ...this.#head, candidates: [last], ...usage }) + (this.#options.isArray ? ']' : '');
  }

  #frameOf(candidate: JsonObject, usage: unknown): string {
    const sum = usage === undefined ? {} : { usageMetadata: summed(this.#before, usage) };
    return this.#written({ ...this.#head, candidates: [candidate], ...(isObject(sum) ? sum : {}) });
  }

  #written(data: JsonObject): string {
    const text = JSON.stringify(data);
    const isFirst = !this.#hasWritten;
    this.#hasWritten = true;
    return this.#options.isArray ? `${isFirst ? '[' : ',\n'}${text}` : formatFrame(text);
  }
}
