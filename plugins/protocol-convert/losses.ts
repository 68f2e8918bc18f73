/** What a target cannot take: hints are noted and left out, promises are refused in the client's terms. */
import { GatewayError } from '../../core/errors.ts';
import type { Setting } from './canon.ts';

/** How a protocol's clients name each setting: `topK` is `top_k`, `generationConfig.topK`. Unnamed ones cannot be asked for. */
export type Spelling = { readonly [K in Setting]?: string };

export class Losses {
  readonly #spelling: Spelling;
  readonly #dropped = new Set<string>();

  constructor(spelling: Spelling) {
    this.#spelling = spelling;
  }

  /** What was left out, in the client's names. */
  get dropped(): readonly string[] {
    return [...this.#dropped];
  }

  /** A hint: the answer is the same kind of answer without it. */
  drop(setting: Setting): void {
    this.#dropped.add(this.nameOf(setting));
  }

  /** A hint that only the client's protocol knows, by the client's own name. */
  dropField(field: string): void {
    this.#dropped.add(field);
  }

  /** A promise: without it the answer would be another one. Throws invalid_request; `because` completes "This model …". */
  refuse(setting: Setting, because: string, field = this.nameOf(setting)): never {
    throw notTranslatable(`The field "${field}" cannot be honoured: this model ${because}.`, field);
  }

  nameOf(setting: Setting): string {
    return this.#spelling[setting] ?? setting;
  }
}

/** Code of the refusals that depend on the target: another one may do. */
export const notTranslatableCode = 'unsupported_by_model';

export function notTranslatable(message: string, field: string): GatewayError {
  // 400, as vendors answer what a model does not support: some clients try again on any other status.
  return new GatewayError('invalid_request', message, { field, code: notTranslatableCode });
}
