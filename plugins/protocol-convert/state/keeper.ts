/** Keeps answers that the client may come back to, or where they are kept. Off the client's path, before its next request. */
import type { Clock, Exchange, Log } from '../../../core/contract.ts';
import { totalTokens } from '../../../core/usage.ts';
import { caller, type Target } from '../../../core/vocabulary.ts';
import { listOf, objectOf, tryParse } from '../json.ts';
import type { Opened, Tap } from '../protocol.ts';
import { inputItems } from '../protocols/responses/input-items.ts';
import { keptItems } from './items.ts';
import { isStorableId, type KeptResponse, storableIds } from './record.ts';
import type { ResponseStore } from './store.ts';

export interface KeeperOptions {
  readonly store: ResponseStore;
  readonly clock: Clock;
  readonly log: Log;
  /** Lifetime; 0: nothing is kept. */
  readonly keepMs: number;
  /** A conversation that is larger, as JSON, is not kept. */
  readonly maxBytes: number;
}

export class Keeper {
  readonly #options: KeeperOptions;

  constructor(options: KeeperOptions) {
    this.#options = options;
  }

  /**
   * For a translated call: what to tell the final response object to, as JSON text. undefined: the client does not want it
   * kept, or cannot come back to it. The work waits until the piece of the answer that is being made is on its way.
   */
  keeping(exchange: Exchange, request: Opened): ((response: string) => void) | undefined {
    if (!this.#isKept(request)) return undefined;
    return (response) =>
      void setImmediate(() => {
        try {
          this.#keep(exchange, request, response);
        } catch (error) {
          this.#options.log.error({ error, exchange: exchange.id }, 'an answer could not be kept');
        }
      });
  }

  /** For a relayed call: what to tell the tap to when the answer has ended. undefined: the upstream keeps nothing. */
  relaying(exchange: Exchange, request: Opened, to: Target): ((tap: Tap) => void) | undefined {
    if (!this.#isKept(request)) return undefined;
    const { provider, credential, protocol } = to;
    return (tap) => {
      const { upstreamId: id, reading } = tap;
      if (!tap.complete || tap.error !== undefined || tap.finish === 'failed' || !isStorableId(id)) return;
      const tokens = reading.hasInput && reading.hasOutput ? totalTokens(reading.usage) : undefined;
      const itemIds = storableIds(tap.itemIds ?? []);
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

  /** The protocol's own default is to keep. */
  #isKept({ protocol, call, compaction, json }: Opened): boolean {
    return (
      this.#options.keepMs > 0 &&
      protocol.name === 'responses' &&
      call.billable &&
      compaction !== 'answer' &&
      json['store'] !== false
    );
  }

  #keep(exchange: Exchange, request: Opened, text: string): void {
    const response = objectOf(tryParse(text)) ?? {};
    const { id, status } = response;
    if ((status !== 'completed' && status !== 'incomplete') || !isStorableId(id)) return;
    const record: KeptResponse = {
      kind: 'kept',
      id,
      itemIds: storableIds(listOf(response['output']).map((item) => objectOf(item)?.['id'])),
      input: JSON.stringify(keptItems(inputItems(request.json), exchange.id)),
      response: text,
      ...this.#lifetime(exchange),
    };
    const { maxBytes, log, store } = this.#options;
    const bytes = Buffer.byteLength(record.input) + Buffer.byteLength(record.response);
    if (bytes <= maxBytes) store.put(record);
    else log.info({ exchange: exchange.id, bytes }, 'an answer is too large to be kept');
  }

  #lifetime(exchange: Exchange): { accountId: string; createdAt: number; expiresAt: number } {
    const createdAt = this.#options.clock.now();
    const accountId = exchange.find(caller)?.accountId ?? '';
    return { accountId, createdAt, expiresAt: createdAt + this.#options.keepMs };
  }
}
