/** Encoding of a model's summary as a compaction item, in a stream, a response or a compaction object. Pure. */
import { GatewayError } from '../../../../core/contract/errors.ts';
import type { JsonObject } from '../../../../core/json/json.ts';
import type { ReplyCodec, ReplyContext, ReplyEncoder } from '../../../common/canonical/codec.ts';
import type { Event, Reply, StopReason } from '../../../common/canonical/reply.ts';
import { sealedSummary } from '../../state/compaction.ts';
import { keptItems } from '../../state/items.ts';
import { userMessages } from './decode/input-items.ts';
import { Frames } from './encode/frames.ts';
import { endingMembers, failedMembers, itemId, responseBase, unfinishedMembers } from './encode/response-object.ts';
import { failureFrames } from './errors.ts';
import { usageObject } from './usage.ts';

type SealSummary = (summary: string) => string;

const completed = { status: 'completed', reason: undefined } as const;
const maxCharacters = 8 * 2 ** 20;

/**
 * Replaces the client's codec where an answer must hold exactly one item, the compaction. `onFailure` is called when a
 * stream ends with an error because no complete summary came.
 */
export function compactionItemCodec(seal: SealSummary, onFailure: (error: GatewayError) => void): ReplyCodec {
  return {
    createEncoder: (context) => new CompactionEncoder(context, seal, onFailure),
    encodeReply(reply, context) {
      const item = compactionItem(context, seal(summaryOf(reply)));
      const base = responseBase(context, { createdAt: reply.createdAt, serviceTier: reply.serviceTier });
      const response = { ...base, ...endingMembers(completed, context.usage(), context.now()), output: [item] };
      context.onResponse?.(JSON.stringify(response));
      return response;
    },
  };
}

/** Replaces the client's codec for the compaction endpoint: all user messages, then the compaction. Never streamed. */
export function compactionAnswerCodec(json: JsonObject, seal: SealSummary): ReplyCodec {
  return {
    createEncoder: () => {
      throw new Error('a compaction object is not streamed');
    },
    encodeReply: (reply, context) => ({
      id: `resp_${context.exchangeId}`,
      object: 'response.compaction',
      created_at: context.createdAt,
      output: [...keptItems(userMessages(json), context.exchangeId), compactionItem(context, seal(summaryOf(reply)))],
      usage: usageObject(context.usage().usage),
    }),
  };
}

function compactionItem({ exchangeId }: ReplyContext, sealed: string): JsonObject {
  return { id: itemId('cmp', exchangeId, 0), type: 'compaction', encrypted_content: sealed };
}

function summaryOf({ choices }: Reply): string {
  const parts = choices[0]?.parts ?? [];
  return checked(parts.map((part) => (part.kind === 'text' ? part.text : '')).join(''), choices[0]?.stop);
}

/** A summary that is missing or was cut off would lose the conversation silently. Throws upstream_failed. */
function checked(text: string, stop: StopReason | undefined): string {
  const isCut = stop === 'length' || text.length > maxCharacters;
  const summary = isCut ? undefined : sealedSummary(text);
  if (summary !== undefined) return summary;
  throw new GatewayError('upstream_failed', 'The model gave no whole summary of the conversation.', {
    code: 'compaction_failed',
  });
}

/** Collects the summary; sends its item alone, when it is complete. */
class CompactionEncoder implements ReplyEncoder {
  readonly #context: ReplyContext;
  readonly #seal: SealSummary;
  readonly #onFailure: (error: GatewayError) => void;
  readonly #frames = new Frames();
  #base: JsonObject | undefined;
  #text = '';
  #stop: StopReason | undefined;

  constructor(context: ReplyContext, seal: SealSummary, onFailure: (error: GatewayError) => void) {
    this.#context = context;
    this.#seal = seal;
    this.#onFailure = onFailure;
  }

  event(event: Event): string {
    if (event.type === 'reply-start') return this.#start(event.createdAt, event.serviceTier);
    if (event.choice !== 0) return '';
    if (event.type === 'text-delta' && this.#text.length <= maxCharacters) this.#text += event.text;
    else if (event.type === 'stop') this.#stop = event.reason;
    return '';
  }

  finish(): string {
    const begun = this.#start();
    let item: JsonObject;
    try {
      item = compactionItem(this.#context, this.#seal(checked(this.#text, this.#stop)));
    } catch (error) {
      if (!(error instanceof GatewayError)) throw error;
      this.#onFailure(error);
      return begun + this.fail(error);
    }
    const itemJson = JSON.stringify(item);
    const itemPrefix = '"output_index":0,"item":';
    const response = {
      ...this.#base,
      ...endingMembers(completed, this.#context.usage(), this.#context.now()),
      output: [item],
    };
    const json = JSON.stringify(response);
    this.#context.onResponse?.(json);
    return (
      begun +
      this.#frames.frame('response.output_item.added', itemPrefix + itemJson) +
      this.#frames.frame('response.output_item.done', itemPrefix + itemJson) +
      this.#frames.frame('response.completed', `"response":${json}`)
    );
  }

  fail(error: GatewayError): string {
    const begun = this.#start();
    const failed = (members: object) => JSON.stringify({ ...this.#base, ...members, ...failedMembers, output: [] });
    return begun + failureFrames(error, this.#frames.next, failed, this.#context.shapeOf?.(error));
  }

  #start(createdAt?: number, serviceTier?: string): string {
    if (this.#base !== undefined) return '';
    this.#base = responseBase(this.#context, { createdAt, serviceTier });
    const members = `"response":${JSON.stringify({ ...this.#base, ...unfinishedMembers })}`;
    return this.#frames.frame('response.created', members) + this.#frames.frame('response.in_progress', members);
  }
}
