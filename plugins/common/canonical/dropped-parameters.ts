/** Parameters that a target does not support: soft ones are recorded and left out, required ones are refused. Pure. */
import { GatewayError } from '../../../core/contract/errors.ts';
import { isObject } from '../../../core/json/json.ts';
import type { Part, Prompt, Setting, Turn } from './prompt.ts';

/** A longer list would say nothing more, and headers are bounded. */
const maxNames = 64;
const maxNameCharacters = 120;

/**
 * The value of the header with the dropped parameters. Member names are arbitrary; a header allows visible ASCII only.
 */
export function droppedHeader(names: readonly string[]): string {
  return names.map((name) => name.replace(/[^\x20-\x7e]|,/g, '?').slice(0, maxNameCharacters)).join(', ');
}

/**
 * The names of settings in a client's protocol: `topK` is `top_k`, `generationConfig.topK`. The protocol lacks
 * settings without a name.
 */
export type Spelling = { readonly [K in Setting]?: string };

export class DroppedParameters {
  readonly #spelling: Spelling;
  /** By name without list positions: of the same member in many messages only the first is recorded. */
  readonly #dropped = new Map<string, string>();
  #written: ((name: string) => string) | undefined;

  constructor(spelling: Spelling) {
    this.#spelling = spelling;
  }

  /** The dropped parameters, by the client's names. */
  get dropped(): readonly string[] {
    return [...this.#dropped.values()];
  }

  /** A soft parameter: the answer is of the same kind without it. */
  drop(setting: Setting): void {
    this.dropField(this.nameOf(setting));
  }

  /** A soft parameter that only the client's protocol has, by the client's own name. */
  dropField(field: string): void {
    const kind = field.replace(/\[\d+\]/g, '[]');
    if (this.#dropped.size < maxNames && !this.#dropped.has(kind)) this.#dropped.set(kind, field);
  }

  /**
   * An unknown member. A number is a setting, which only tunes the answer; a boolean, a string, an object or a list
   * may be input for the model, which must not be dropped silently. `hints` are known soft parameters. Throws
   * invalid_request.
   */
  unknown(field: string, value: unknown, softParameters: ReadonlySet<string>): void {
    if (!hasEffect(value)) return;
    if (!softParameters.has(field) && typeof value !== 'number') {
      const because = 'is not known for this model, and leaving it out could change the answer';
      throw notTranslatable(`The field "${field}" ${because}.`, field);
    }
    this.dropField(field);
  }

  /**
   * A required parameter: without it the answer would be a different one. Throws invalid_request; `because` completes
   * "This model …".
   */
  refuse(setting: Setting, because: string, field = this.nameOf(setting)): never {
    throw notTranslatable(`The field "${field}" cannot be honoured: this model ${because}.`, field);
  }

  /** For settings that a client may write in several ways: `written` finds the name that this request has. */
  spellWith(written: (name: string) => string): void {
    this.#written = written;
  }

  nameOf(setting: Setting): string {
    const name = this.#spelling[setting] ?? setting;
    return this.#written?.(name) ?? name;
  }
}

/** false for values that mean the same as an absent member. */
export function hasEffect(value: unknown): boolean {
  if (value === undefined || value === null || value === false || value === '') return false;
  if (Array.isArray(value)) return value.length > 0;
  return !isObject(value) || Object.keys(value).length > 0;
}

/** Code of the refusals that depend on the target: another target may serve the request. */
export const notTranslatableCode = 'unsupported_by_model';

export function notTranslatable(message: string, field: string): GatewayError {
  // 400, as vendors answer for features that a model does not support: some clients retry on any other status.
  return new GatewayError('invalid_request', message, { field, code: notTranslatableCode });
}

/** Settings without which the answer would be a different one, and what an upstream says that lacks them. */
const requiredSettings: ReadonlyMap<keyof Prompt, string> = new Map([
  ['choices', 'gives one answer at a time'],
  ['outputKinds', 'answers with text alone'],
  ['output', 'gives no structured answers'],
]);

/** Records the settings of a prompt that are not among `taken`. Throws invalid_request for those that may not be left out. */
export function dropOthers(prompt: Prompt, taken: ReadonlySet<keyof Prompt>, dropped: DroppedParameters): void {
  for (const name of Object.keys(prompt) as (keyof Prompt)[]) {
    const value = prompt[name];
    if (name === 'turns' || taken.has(name) || !hasEffect(value) || (name === 'choices' && value === 1)) continue;
    const why = requiredSettings.get(name);
    if (why === undefined) dropped.drop(name);
    else dropped.refuse(name, why);
  }
}

/** Records what turns and parts carry beside their content, for protocols that have a place for none of it. */
export function dropMarks(turns: readonly Turn[], dropped: DroppedParameters): void {
  for (const { parts, phase, name } of turns) {
    if (phase !== undefined) dropped.drop('phase');
    if (name !== undefined) dropped.drop('names');
    for (const part of parts) for (const setting of marksOf(part)) dropped.drop(setting);
  }
}

function marksOf(part: Part): Setting[] {
  const marks: Setting[] = 'cache' in part && part.cache !== undefined ? ['cacheMarks'] : [];
  if (part.kind === 'search') marks.push('searchHistory');
  if (part.kind === 'text' && part.citations !== undefined) marks.push('citedHistory');
  if ('source' in part && part.citations === true) marks.push('documentCitations');
  return marks;
}
