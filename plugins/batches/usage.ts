/** Tokens that the answers of a batch's lines report, summed up in OpenAI's form. Pure. */
import { objectOf, tryParse } from '../../core/json/json.ts';
import { readCount } from '../common/domain/usage.ts';
import type { BatchUsage, DoneLine } from './batch.ts';

export class LineUsage {
  #input = 0;
  #cached = 0;
  #output = 0;
  #reasoning = 0;

  /** Answers of chat, responses and embeddings name the same counts in two ways. */
  add({ answer }: Pick<DoneLine, 'answer'>): void {
    const usage = answer === undefined ? undefined : objectOf(objectOf(tryParse(answer))?.['usage']);
    if (usage === undefined) return;
    const count = (...names: readonly string[]) =>
      names.map((name) => readCount(usage[name])).find((value) => value !== undefined) ?? 0;
    const detail = (member: string, ...groups: readonly string[]) =>
      groups.map((group) => readCount(objectOf(usage[group])?.[member])).find((value) => value !== undefined) ?? 0;
    this.#input += count('input_tokens', 'prompt_tokens');
    this.#output += count('output_tokens', 'completion_tokens');
    this.#cached += detail('cached_tokens', 'input_tokens_details', 'prompt_tokens_details');
    this.#reasoning += detail('reasoning_tokens', 'output_tokens_details', 'completion_tokens_details');
  }

  total(): BatchUsage {
    return {
      input_tokens: this.#input,
      input_tokens_details: { cached_tokens: this.#cached },
      output_tokens: this.#output,
      output_tokens_details: { reasoning_tokens: this.#reasoning },
      total_tokens: this.#input + this.#output,
    };
  }
}
