/** Requests that are kept while their calls run, since their prompts may have to be counted. */
import type { Exchange } from '../../../core/contract/contract.ts';
import type { JsonObject } from '../../../core/json/json.ts';
import type { ClientCodec } from '../../common/canonical/codec.ts';
import { DroppedParameters } from '../../common/canonical/dropped-parameters.ts';
import { opened } from '../../common/wire/protocols.ts';
import { estimateTokens, usualMedia } from './estimate-tokens.ts';

/** Larger ones are not kept: decoding them would hold other requests up. */
const largestBytes = 256 * 1024;
const mostBytes = 32 * 2 ** 20;

interface Kept {
  readonly json: JsonObject;
  readonly codec: ClientCodec;
}

export class KeptRequests {
  readonly #kept = new Map<string, Kept>();
  #bytes = 0;

  keep(exchange: Exchange): void {
    const { bodyBytes } = exchange.request;
    if (bodyBytes > largestBytes || this.#bytes + bodyBytes > mostBytes || this.#kept.has(exchange.id)) return;
    const { json, protocol, decodeWith } = exchange.get(opened);
    this.#kept.set(exchange.id, { json, codec: (decodeWith ?? protocol).codec });
    this.#bytes += bodyBytes;
  }

  forget({ id, request }: Pick<Exchange, 'id' | 'request'>): void {
    if (this.#kept.delete(id)) this.#bytes -= request.bodyBytes;
  }

  async count(id: string): Promise<number | undefined> {
    const kept = this.#kept.get(id);
    if (kept === undefined) return undefined;
    const { json, codec } = kept;
    try {
      // Sealed texts are not part of what a vendor counts.
      const context = { dropped: new DroppedParameters(codec.spelling), open: () => undefined };
      return await estimateTokens(codec.decodeRequest(json, context), usualMedia);
    } catch {
      return undefined;
    }
  }
}
