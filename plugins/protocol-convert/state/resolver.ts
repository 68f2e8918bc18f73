/** Finds what a request builds on, and states the request that can be handled: written out, or pinned to who keeps it. */
import type { Exchange } from '../../../core/contract.ts';
import { call, caller, pinned } from '../../../core/vocabulary.ts';
import { invalid } from '../checks.ts';
import { isObject, type JsonObject, listOf, textOf, tryParse } from '../json.ts';
import { type BuiltOn, type Opened, opened } from '../protocol.ts';
import { itemLost, previousResponseLost, scattered } from './lost.ts';
import type { KeptResponse, RelayedResponse, ResponseRecord } from './record.ts';
import type { ResponseStore } from './store.ts';

const mostReferences = 2_000;

export class Resolver {
  readonly #store: ResponseStore;

  constructor(store: ResponseStore) {
    this.#store = store;
  }

  /**
   * For the opening of a request: states `call` and `opened` anew, and `pinned` where an upstream keeps what it builds on.
   * Nothing to do, and nothing to wait for, when it builds on nothing. Throws `previous_response_not_found`.
   */
  resolve(exchange: Exchange, request: Opened): undefined | Promise<void> {
    return request.builtOn === undefined ? undefined : this.#resolve(exchange, request, request.builtOn);
  }

  async #resolve(exchange: Exchange, request: Opened, builtOn: BuiltOn): Promise<void> {
    const { responseId, itemIds } = builtOn;
    const accountId = exchange.find(caller)?.accountId ?? '';
    if (itemIds.length > mostReferences)
      throw invalid(`The field "input" may refer to at most ${mostReferences} items.`, 'input');
    const previous = responseId === undefined ? undefined : await this.#store.find(accountId, responseId);
    if (responseId !== undefined && previous === undefined) throw previousResponseLost(responseId);
    const holders = await this.#holders(accountId, itemIds);
    const records = new Set([...(previous === undefined ? [] : [previous]), ...holders.values()]);
    const relayed = [...records].filter((record) => record.kind === 'relayed');
    if (relayed.length === 0) {
      const earlier = previous?.kind === 'kept' ? conversationOf(previous) : [];
      return restate(exchange, builtOn.expanded(earlier, itemsOf(holders)));
    }
    if (relayed.length < records.size || !areTogether(relayed)) throw scattered();
    // Nothing but the request as it came can be continued elsewhere.
    if (request.decodeWith !== undefined) throw previousResponseLost(responseId ?? itemIds[0]!);
    const { provider, credential, protocol } = relayed[0]!;
    exchange.set(pinned, { provider, credential, protocol });
    restate(exchange, builtOn.continued(tokensOf(relayed)));
  }

  async #holders(accountId: string, itemIds: readonly string[]): Promise<Map<string, ResponseRecord>> {
    if (itemIds.length === 0) return new Map();
    const holders = await this.#store.findByItems(accountId, itemIds);
    const missing = itemIds.find((id) => !holders.has(id));
    if (missing !== undefined) throw itemLost(missing);
    return holders;
  }
}

function restate(exchange: Exchange, request: Opened): void {
  exchange.set(call, request.call);
  exchange.set(opened, request);
}

function areTogether(records: readonly RelayedResponse[]): boolean {
  const [first] = records;
  return records.every(
    (record) =>
      record.provider === first!.provider &&
      record.credential === first!.credential &&
      record.protocol === first!.protocol,
  );
}

/** Of the longest conversation among them; undefined when one is unknown. */
function tokensOf(records: readonly RelayedResponse[]): number | undefined {
  let most = 0;
  for (const { tokens } of records) {
    if (tokens === undefined) return undefined;
    most = Math.max(most, tokens);
  }
  return most;
}

/** All items of the conversation up to this answer, itself included. */
function conversationOf(record: KeptResponse): JsonObject[] {
  return [...listOf(tryParse(record.input)), ...outputOf(record)].filter(isObject);
}

function outputOf(record: KeptResponse): readonly unknown[] {
  const response = tryParse(record.response);
  return isObject(response) ? listOf(response['output']) : [];
}

/** The items themselves, by id, out of the answers that have them. */
function itemsOf(holders: ReadonlyMap<string, ResponseRecord>): Map<string, JsonObject> {
  const items = new Map<string, JsonObject>();
  for (const record of new Set(holders.values())) {
    for (const item of record.kind === 'kept' ? outputOf(record) : []) {
      const id = isObject(item) ? textOf(item['id']) : undefined;
      if (id !== undefined && holders.has(id)) items.set(id, item as JsonObject);
    }
  }
  return items;
}
