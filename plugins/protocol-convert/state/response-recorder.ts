/**
 * Stores answers, or their location, for later references. Runs after the response and before the client's next
 * request.
 */

import type { Exchange } from '../../../core/contract/contract.ts';
import type { Clock } from '../../../core/contract/host-tools.ts';
import { type JsonObject, listOf, objectOf, tryParse } from '../../../core/json/json.ts';
import { caller } from '../../common/domain/accounts.ts';
import type { Target } from '../../common/domain/upstreams.ts';
import { totalTokens } from '../../common/domain/usage.ts';
import type { KeptConversation, Opened } from '../../common/wire/protocols.ts';
import type { UsageMeter } from '../../common/wire/usage-meter.ts';
import type { RelayHooks } from '../relay/hooks.ts';
import type { ConversationStore } from './conversations/store.ts';
import { keptItems } from './items.ts';
import { isStorableId, type KeptResponse, storableIds } from './record.ts';
import type { ResponseStore } from './store.ts';

export interface ResponseRecorderOptions {
  readonly store: ResponseStore;
  readonly conversations: ConversationStore;
  readonly clock: Clock;
  /** Lifetime; 0: nothing is stored. */
  readonly keepMs: number;
  /** A conversation that is larger, as JSON, is not stored. */
  readonly maxBytes: number;
}

export class ResponseRecorder {
  readonly #options: ResponseRecorderOptions;
  readonly #appended = new WeakSet<KeptConversation>();

  constructor(options: ResponseRecorderOptions) {
    this.#options = options;
  }

  /**
   * For a translated call: returns the function that gets the final response object as JSON text. undefined: the
   * client does not want it stored, or has no way to refer to it. The work waits until the current piece of the answer
   * was sent.
   */
  recordTranslated(exchange: Exchange, request: Opened): ((response: string) => void) | undefined {
    const append = this.#appending(exchange, request);
    const items = this.#isStored(request) ? this.#itemsOf(exchange, request) : undefined;
    if (items === undefined && append === undefined) return undefined;
    return (response) => {
      append?.(response);
      if (items === undefined) return;
      setImmediate(() => {
        try {
          this.#store(exchange, items, response);
        } catch (error) {
          exchange.log.error({ error }, 'an answer could not be stored');
        }
      });
    };
  }

  /** Only the request's input is kept as long as the answer takes, and only if it may be stored. */
  #itemsOf(exchange: Exchange, { protocol, json }: Opened): readonly unknown[] | undefined {
    const items = protocol.inputItems?.(json) ?? [];
    const bytes = leastBytes(items);
    if (bytes <= this.#options.maxBytes) return items;
    this.#logTooLarge(exchange, bytes);
    return undefined;
  }

  #appending(exchange: Exchange, { conversation }: Opened): ((response: string) => void) | undefined {
    if (conversation === undefined) return undefined;
    return (text) => {
      const response = objectOf(tryParse(text)) ?? {};
      this.#append(exchange, conversation, response['status'], listOf(response['output']));
    };
  }

  /** Once for a call, whichever of its attempts ends first. */
  #append(exchange: Exchange, conversation: KeptConversation, status: unknown, output: readonly unknown[]): void {
    if ((status !== 'completed' && status !== 'incomplete') || this.#appended.has(conversation)) return;
    this.#appended.add(conversation);
    const { id, input } = conversation;
    const accountId = exchange.find(caller)?.accountId ?? '';
    this.#options.conversations.append(accountId, id, [...input, ...output], exchange.id);
  }

  /**
   * For a relayed call: returns the functions that get the parts of an answer with its items, and the usage meter when the answer
   * has ended. Absent: the upstream does not store the answer, and it belongs to no conversation.
   */
  recordRelayed(exchange: Exchange, request: Opened, to: Target): Pick<RelayHooks, 'ended' | 'items'> {
    const stored = this.#isStored(request) ? this.#recordingPlace(exchange, to) : undefined;
    const { conversation } = request;
    if (conversation === undefined) return { ended: stored };
    const answered = new AnsweredItems();
    return {
      items: (part) => answered.take(part),
      ended: (usageMeter) => {
        stored?.(usageMeter);
        const isWhole = usageMeter.complete && usageMeter.error === undefined;
        if (isWhole) this.#append(exchange, conversation, answered.status, answered.output);
      },
    };
  }

  #recordingPlace(exchange: Exchange, { provider, credential, protocol }: Target): (usageMeter: UsageMeter) => void {
    return (usageMeter) => {
      const { upstreamId: id, reading } = usageMeter;
      if (!usageMeter.complete || usageMeter.error !== undefined || usageMeter.finish === 'failed' || !isStorableId(id))
        return;
      const tokens = reading.hasInput && reading.hasOutput ? totalTokens(reading.usage) : undefined;
      const itemIds = storableIds(usageMeter.itemIds ?? []);
      this.#options.store.put({
        kind: 'relayed',
        id,
        itemIds,
        provider,
        credential,
        protocol,
        tokens,
        ...this.#lifetime(exchange),
      });
    };
  }

  /** The protocol's own default is to store. */
  #isStored({ protocol, call, compaction, json }: Opened): boolean {
    return (
      this.#options.keepMs > 0 &&
      protocol.inputItems !== undefined &&
      call.billable &&
      compaction !== 'answer' &&
      json['store'] !== false
    );
  }

  #store(exchange: Exchange, items: readonly unknown[], text: string): void {
    const response = objectOf(tryParse(text)) ?? {};
    const { id, status } = response;
    if ((status !== 'completed' && status !== 'incomplete') || !isStorableId(id)) return;
    const record: KeptResponse = {
      kind: 'kept',
      id,
      itemIds: storableIds(listOf(response['output']).map((item) => objectOf(item)?.['id'])),
      input: JSON.stringify(keptItems(items, exchange.id)),
      response: text,
      ...this.#lifetime(exchange),
    };
    const { maxBytes, store } = this.#options;
    const bytes = Buffer.byteLength(record.input) + Buffer.byteLength(record.response);
    if (bytes <= maxBytes) store.put(record);
    else this.#logTooLarge(exchange, bytes);
  }

  #logTooLarge(exchange: Exchange, bytes: number): void {
    exchange.log.info({ bytes }, 'an answer is too large to be stored');
  }

  #lifetime(exchange: Exchange): { accountId: string; createdAt: number; expiresAt: number } {
    const createdAt = this.#options.clock.now();
    const accountId = exchange.find(caller)?.accountId ?? '';
    return { accountId, createdAt, expiresAt: createdAt + this.#options.keepMs };
  }
}

/** The items of a relayed answer: of its final object, or where that has none, as they were finished one by one. */
class AnsweredItems {
  status: unknown;
  #final: readonly unknown[] = [];
  readonly #finished: unknown[] = [];

  take(part: JsonObject): void {
    if (part['item'] !== undefined) {
      this.#finished.push(part['item']);
      return;
    }
    this.status = part['status'];
    this.#final = listOf(part['output']);
  }

  get output(): readonly unknown[] {
    return this.#final.length > 0 ? this.#final : this.#finished;
  }
}

/** The length of all strings in it: its JSON has at least as many bytes. */
function leastBytes(value: unknown): number {
  if (typeof value === 'string') return value.length;
  if (typeof value !== 'object' || value === null) return 0;
  return Object.values(value).reduce((sum: number, part) => sum + leastBytes(part), 0);
}
