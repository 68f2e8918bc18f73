/**
 * Resolution of references to earlier answers: expands the request, or pins it to the provider and key that store
 * them.
 */
import type { Exchange } from '../../../core/contract/contract.ts';
import { isObject, type JsonObject, listOf, textOf, tryParse } from '../../../core/json/json.ts';
import { caller } from '../../common/domain/accounts.ts';
import { call, pinned } from '../../common/domain/calls.ts';
import { type BuiltOn, type Opened, opened } from '../../common/wire/protocols.ts';
import { invalid } from '../request/checks.ts';
import { isOwnConversationId } from './conversations/record.ts';
import type { ConversationStore } from './conversations/store.ts';
import { cannotContinueTogether, itemNotFound, previousResponseNotFound } from './not-found.ts';
import type { KeptResponse, RelayedResponse, ResponseRecord } from './record.ts';
import type { ResponseStore } from './store.ts';

const mostReferences = 2_000;

/** Puts the content of kept files in the place of their ids. */
type Fill = (items: readonly JsonObject[]) => Promise<readonly JsonObject[]>;

export class Resolver {
  readonly #store: ResponseStore;
  readonly #conversations: ConversationStore;

  constructor(store: ResponseStore, conversations: ConversationStore) {
    this.#store = store;
    this.#conversations = conversations;
  }

  /** Whether the request names a conversation that the gateway keeps; others are a vendor's. */
  isInConversation({ builtOn }: Opened): boolean {
    return isOwnConversationId(builtOn?.conversationId);
  }

  /** As `resolve`, for a request in a conversation. `input`: the request's own as the client has sent it. Throws not_found. */
  async continueConversation(
    exchange: Exchange,
    request: Opened,
    input: readonly unknown[],
    fill: Fill,
  ): Promise<void> {
    const { conversationId: id, itemIds, ...builtOn } = request.builtOn!;
    const accountId = exchange.find(caller)?.accountId ?? '';
    const earlier = await this.#conversations.begin(accountId, id!, input);
    if (earlier.length + input.length === 0) throw invalid('The field "input" is missing.', 'input');
    const holders = await this.#holders(accountId, itemIds);
    if ([...holders.values()].some(({ kind }) => kind === 'relayed')) throw cannotContinueTogether();
    const items = itemsOf(holders);
    const own = input.map((item) => (isObject(item) && items.get(textOf(item['id']) ?? '')) || item);
    restate(exchange, builtOn.expanded(await fill(earlier), items, { id: id!, input: own }));
  }

  /**
   * For the opening of a request: sets `call` and `opened` again, and `pinned` where an upstream stores the referenced
   * answer. Returns undefined for a request without references. Throws `previous_response_not_found`.
   */
  resolve(exchange: Exchange, request: Opened): undefined | Promise<void> {
    const { builtOn } = request;
    if (builtOn === undefined || (builtOn.responseId === undefined && builtOn.itemIds.length === 0)) return undefined;
    return this.#resolve(exchange, request, builtOn);
  }

  async #resolve(exchange: Exchange, request: Opened, builtOn: BuiltOn): Promise<void> {
    const { responseId, itemIds } = builtOn;
    const accountId = exchange.find(caller)?.accountId ?? '';
    if (itemIds.length > mostReferences)
      throw invalid(`The field "input" may refer to at most ${mostReferences} items.`, 'input');
    const previous = responseId === undefined ? undefined : await this.#store.find(accountId, responseId);
    if (responseId !== undefined && previous === undefined) throw previousResponseNotFound(responseId);
    const holders = await this.#holders(accountId, itemIds);
    const records = new Set([...(previous === undefined ? [] : [previous]), ...holders.values()]);
    const relayed = [...records].filter((record) => record.kind === 'relayed');
    if (relayed.length === 0) {
      const earlier = previous?.kind === 'kept' ? conversationOf(previous) : [];
      return restate(exchange, builtOn.expanded(earlier, itemsOf(holders)));
    }
    if (relayed.length < records.size || !areTogether(relayed)) throw cannotContinueTogether();
    // An upstream can continue only the unchanged request.
    if (request.decodeWith !== undefined) throw previousResponseNotFound(responseId ?? itemIds[0]!);
    const { provider, credential, protocol } = relayed[0]!;
    exchange.set(pinned, { provider, credential, protocol });
    restate(exchange, builtOn.continued(tokensOf(relayed)));
  }

  async #holders(accountId: string, itemIds: readonly string[]): Promise<Map<string, ResponseRecord>> {
    if (itemIds.length === 0) return new Map();
    const holders = await this.#store.findByItems(accountId, itemIds);
    const missing = itemIds.find((id) => !holders.has(id));
    if (missing !== undefined) throw itemNotFound(missing);
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

/** Tokens of the longest conversation; undefined when one is unknown. */
function tokensOf(records: readonly RelayedResponse[]): number | undefined {
  let most = 0;
  for (const { tokens } of records) {
    if (tokens === undefined) return undefined;
    most = Math.max(most, tokens);
  }
  return most;
}

/** All items of the conversation up to and including this answer. */
function conversationOf(record: KeptResponse): JsonObject[] {
  return [...listOf(tryParse(record.input)), ...outputOf(record)].filter(isObject);
}

function outputOf(record: KeptResponse): readonly unknown[] {
  const response = tryParse(record.response);
  return isObject(response) ? listOf(response['output']) : [];
}

/** The items by id, out of the answers that contain them. */
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
