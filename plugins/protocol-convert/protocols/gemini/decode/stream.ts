/** Decodes an upstream's chunks and its whole answers, which have the same shape. Pure. */
import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../../../../core/json/json.ts';
import type { ReplyDecoder } from '../../../../common/canonical/codec.ts';
import { isChoice, type ReplyEvents } from '../../../../common/canonical/events.ts';
import type { Source } from '../../../../common/canonical/prompt.ts';
import { answeredSource, bytesSource, kindOfMedia } from '../../../../common/encoding/media.ts';
import { executedCode } from '../executed-code.ts';
import { isFailure, isMalformed, stopOf } from '../finish.ts';
import { logprobsOf } from '../logprobs.ts';
import { emitCitations, emitGrounding, groundingSearch } from './grounding.ts';
import { PartialArgs } from './partial-args.ts';

/** A call with streamed arguments. */
interface PartialCall {
  /** The upstream's id; undefined: it sent none, or an id that it had already used. */
  readonly id: string | undefined;
  readonly name: string;
  readonly args: PartialArgs;
}

/** State of one candidate. */
class Candidate {
  readonly choice: number;
  /** The block that the last part opened. */
  open: 'text' | 'reasoning' | undefined;
  /** Signature of the open block: emitted when the block ends, as citations may still arrive. */
  signature: string | undefined;
  text = '';
  blockStart = 0;
  calls = 0;
  partial: PartialCall | undefined;
  /** Whether something that a client can use was emitted. */
  hasAnswer = false;
  finish: string | undefined;
  grounding: JsonObject | undefined;
  citations: JsonObject | undefined;

  constructor(choice: number) {
    this.choice = choice;
  }
}

/**
 * Parts are increments; calls are whole unless their arguments are streamed as JSON paths. The finish reason is emitted at
 * the end, the last one wins: some hosts send one in every chunk, and grounding metadata arrives after it.
 */
export class GeminiDecoder implements ReplyDecoder {
  readonly #events: ReplyEvents;
  readonly #candidates = new Map<number, Candidate>();
  readonly #callIds = new Set<string>();
  #started = false;
  #blocked: string | undefined;

  constructor(events: ReplyEvents) {
    this.#events = events;
  }

  payload(json: JsonObject): void {
    if (!this.#started) this.#start(json);
    const { candidates } = json;
    if (Array.isArray(candidates) && candidates.length > 0) {
      for (let position = 0; position < candidates.length; position++) {
        const candidate: unknown = candidates[position];
        if (isObject(candidate)) this.#take(candidate, position);
      }
      return;
    }
    const feedback = objectOf(json['promptFeedback'] ?? json['prompt_feedback']);
    if (feedback === undefined) return;
    const reason = textOf(feedback['blockReason'] ?? feedback['block_reason']);
    if (reason === undefined) return;
    this.#blocked = reason;
    this.#events.refusal(0, textOf(feedback['blockReasonMessage'] ?? feedback['block_reason_message']) ?? '');
  }

  end(): void {
    for (const candidate of this.#candidates.values()) this.#finish(candidate);
    if (this.#candidates.size > 0) return;
    if (this.#blocked !== undefined) this.#events.stop(0, 'refusal');
    else this.#events.failure = 'The model gave no answer.';
  }

  #start(json: JsonObject): void {
    this.#started = true;
    const created = Date.parse(textOf(json['createTime'] ?? json['create_time']) ?? '');
    const usage = objectOf(json['usageMetadata'] ?? json['usage_metadata']);
    const tier = textOf(usage?.['serviceTier'] ?? usage?.['service_tier']);
    this.#events.start(
      textOf(json['responseId'] ?? json['response_id']),
      Number.isNaN(created) ? undefined : Math.floor(created / 1000),
      tier === 'standard' ? 'default' : tier,
    );
  }

  #take(json: JsonObject, position: number): void {
    const index = typeof json['index'] === 'number' ? json['index'] : position;
    if (!isChoice(index)) return;
    let candidate = this.#candidates.get(index);
    if (candidate === undefined) {
      candidate = new Candidate(index);
      this.#candidates.set(index, candidate);
    }
    const finish = json['finishReason'] ?? json['finish_reason'];
    if (typeof finish === 'string') candidate.finish = finish;
    const logprobs = json['logprobsResult'] ?? json['logprobs_result'];
    this.#parts(candidate, objectOf(json['content'])?.['parts']);
    if (logprobs !== undefined) this.#logprobs(candidate, logprobs);
    const grounding = json['groundingMetadata'] ?? json['grounding_metadata'];
    if (isObject(grounding)) candidate.grounding = grounding;
    const citations = json['citationMetadata'] ?? json['citation_metadata'];
    if (isObject(citations)) candidate.citations = citations;
  }

  #parts(candidate: Candidate, parts: unknown): void {
    for (const part of listOf(parts)) if (isObject(part)) this.#part(candidate, part);
  }

  #part(candidate: Candidate, part: JsonObject): void {
    const signature = part['thoughtSignature'] ?? part['thought_signature'];
    const signed = typeof signature === 'string' && signature !== '' ? signature : undefined;
    const { text } = part;
    if (typeof text === 'string') {
      this.#text(candidate, text, part['thought'] === true, signed);
      return;
    }
    const call = part['functionCall'] ?? part['function_call'];
    if (isObject(call)) this.#call(candidate, call, signed);
    else if (part['thought'] !== true) this.#other(candidate, part, signed);
  }

  /** A signed part is not merged with the part after it. */
  #text(candidate: Candidate, text: string, isThought: boolean, signature: string | undefined): void {
    const { choice } = candidate;
    if (candidate.signature !== undefined && (text !== '' || signature !== undefined)) this.#close(candidate);
    if (text !== '' && isThought) {
      candidate.open = 'reasoning';
      this.#events.reasoning(choice, text);
    } else if (text !== '') {
      this.#say(candidate, text);
    }
    if (signature === undefined) return;
    if (candidate.open === undefined) {
      // A signature without a visible part: kept as a thought without text.
      this.#events.reasoning(choice, '');
      candidate.open = 'reasoning';
    }
    candidate.signature = signature;
  }

  #say(candidate: Candidate, text: string): void {
    if (candidate.open !== 'text') {
      candidate.open = 'text';
      candidate.blockStart = candidate.text.length;
    }
    candidate.text += text;
    candidate.hasAnswer = true;
    this.#events.text(candidate.choice, text);
  }

  #call(candidate: Candidate, call: JsonObject, signature: string | undefined): void {
    // A call in a chunk that reports a malformed call must not be run.
    if (isMalformed(candidate.finish)) return;
    this.#close(candidate);
    const partialArgs = call['partialArgs'] ?? call['partial_args'];
    const goesOn = (call['willContinue'] ?? call['will_continue']) === true;
    const name = textOf(call['name']);
    if (isAnotherCall(candidate.partial, call)) this.#endPartial(candidate, undefined);
    if (candidate.partial === undefined && partialArgs === undefined && !goesOn) {
      if (name === undefined) return;
      const key = this.#beginCall(candidate, name, this.#freshId(call), JSON.stringify(objectOf(call['args']) ?? {}));
      this.#events.endCall(candidate.choice, key, signature === undefined ? {} : { opaqueState: signature });
      return;
    }
    candidate.partial ??= { id: this.#freshId(call), name: name ?? '', args: new PartialArgs() };
    candidate.partial.args.take(partialArgs);
    if (signature !== undefined) candidate.signature = signature;
    if (!goesOn) this.#endPartial(candidate, undefined);
  }

  #beginCall(candidate: Candidate, name: string, id: string | undefined, input: string): number {
    const key = candidate.calls++;
    candidate.hasAnswer = true;
    this.#events.call(candidate.choice, key, { id, name, input });
    return key;
  }

  /** Emits a call with streamed arguments; a call that was cut off ends with the answer. */
  #endPartial(candidate: Candidate, finish: string | undefined): void {
    const { partial, signature } = candidate;
    if (partial === undefined) return;
    candidate.partial = undefined;
    candidate.signature = undefined;
    if (partial.name === '') return;
    const key = this.#beginCall(candidate, partial.name, partial.id, partial.args.text);
    if (finish === 'MAX_TOKENS') return;
    this.#events.endCall(candidate.choice, key, signature === undefined ? {} : { opaqueState: signature });
  }

  /** Ids must be unique in an answer; a repeated one is replaced. */
  #freshId(call: JsonObject): string | undefined {
    const id = textOf(call['id']);
    if (id === undefined || this.#callIds.has(id)) return undefined;
    this.#callIds.add(id);
    return id;
  }

  /** Media, and code that the vendor ran itself, as text. */
  #other(candidate: Candidate, part: JsonObject, signature: string | undefined): void {
    const code = executedCode(part);
    if (code === undefined) {
      this.#media(candidate, part, signature);
      return;
    }
    if (candidate.signature !== undefined) this.#close(candidate);
    this.#say(candidate, code);
  }

  #media(candidate: Candidate, part: JsonObject, signature: string | undefined): void {
    const source = sourceOf(part);
    if (source === undefined) return;
    this.#close(candidate);
    candidate.hasAnswer = true;
    const mediaType = 'mediaType' in source ? source.mediaType : undefined;
    const signed = signature === undefined ? {} : { opaqueState: { maker: '', value: signature } };
    this.#events.media(candidate.choice, { kind: kindOfMedia(mediaType ?? 'image/*'), source, ...signed });
  }

  #logprobs(candidate: Candidate, result: unknown): void {
    const logprobs = logprobsOf(result);
    if (logprobs === undefined || candidate.open !== 'text') return;
    this.#events.text(candidate.choice, '', logprobs);
  }

  #close(candidate: Candidate): void {
    if (candidate.open !== undefined) {
      this.#events.close(candidate.choice, candidate.signature);
      candidate.signature = undefined;
    }
    candidate.open = undefined;
  }

  #finish(candidate: Candidate): void {
    const { choice, finish = 'STOP', grounding, citations } = candidate;
    this.#endPartial(candidate, finish);
    if (isFailure(finish) && !candidate.hasAnswer) {
      this.#events.failure = `The model's answer could not be used (${finish}).`;
      return;
    }
    if (candidate.open === 'text' && citations !== undefined) emitCitations(this.#events, choice, citations, candidate);
    if (candidate.open === 'text' && grounding !== undefined) emitGrounding(this.#events, choice, grounding, candidate);
    this.#close(candidate);
    const search = grounding === undefined ? undefined : groundingSearch(choice, grounding);
    if (search !== undefined) this.#events.search(choice, search);
    this.#events.stop(choice, stopOf(finish));
  }
}

/** Pieces may name their call once more. */
function isAnotherCall(partial: PartialCall | undefined, call: JsonObject): boolean {
  const name = textOf(call['name']);
  const id = textOf(call['id']);
  if (partial === undefined || name === undefined) return false;
  return name !== partial.name || (id !== undefined && id !== partial.id);
}

function sourceOf(part: JsonObject): Source | undefined {
  const inline = objectOf(part['inlineData'] ?? part['inline_data']);
  const file = objectOf(part['fileData'] ?? part['file_data']);
  const declared = textOf((inline ?? file)?.['mimeType'] ?? (inline ?? file)?.['mime_type']);
  const data = textOf(inline?.['data']);
  if (data !== undefined) return bytesSource(data, declared);
  const uri = textOf(file?.['fileUri'] ?? file?.['file_uri']);
  return uri === undefined ? undefined : answeredSource(uri, declared);
}

/** A whole answer is one chunk without another after it. */
export function decodeReply(json: JsonObject, events: ReplyEvents): void {
  const decoder = new GeminiDecoder(events);
  decoder.payload(json);
  decoder.end();
}
