/** Stored responses of the sandbox vendor, bounded in number. */

import { type JsonObject, listOf, objectOf } from './json.ts';
import type { Turn } from './protocol.ts';
import { wholeResponse } from './protocols/responses.ts';

export interface StoredResponse {
  readonly turn: Turn;
  /** Bytes of its request, for the limit. */
  readonly bytes: number;
}

const maxStoredResponses = 1_000;

const maxStoredBytes = 16 * 2 ** 20;

export class StoredResponses {
  readonly #stored = new Map<string, StoredResponse>();
  #bytes = 0;

  /** Stores a completed response, unless its client set `store: false`. */
  keep(turn: Turn, bytes: number): void {
    if (turn.call.protocol !== 'responses' || turn.call.operation !== 'answer' || turn.body['store'] === false) return;
    this.#stored.set(`resp_${turn.id}`, { turn, bytes });
    this.#bytes += bytes;
    for (const id of this.#stored.keys()) {
      if (this.#stored.size <= maxStoredResponses && this.#bytes <= maxStoredBytes) break;
      this.delete(id);
    }
  }

  find(id: string): Turn | undefined {
    return this.#stored.get(id)?.turn;
  }

  delete(id: string): void {
    this.#bytes -= this.#stored.get(id)?.bytes ?? 0;
    this.#stored.delete(id);
  }

  /** The request with the conversation of its `previous_response_id` inserted; unchanged without a known one. */
  continued(body: JsonObject): JsonObject {
    const { previous_response_id: id } = body;
    const turn = typeof id === 'string' ? this.find(id) : undefined;
    return turn === undefined ? body : continuedFrom(turn, body);
  }
}

/** The request with the conversation up to the end of `turn` inserted. */
export function continuedFrom(turn: Turn, { previous_response_id: id, ...rest }: JsonObject): JsonObject {
  const output = listOf(objectOf(JSON.parse(wholeResponse(turn)))['output']);
  const input = [...itemsOf(turn.body['input']), ...output, ...itemsOf(rest['input'])];
  return { ...rest, input, continued_response_id: id };
}

export function itemsOf(input: unknown): readonly unknown[] {
  return typeof input === 'string' ? [{ role: 'user', content: [{ type: 'input_text', text: input }] }] : listOf(input);
}
