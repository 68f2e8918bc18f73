/** Encodes a whole answer for a client. Pure. */

import type { JsonObject } from '../../../../../core/json/json.ts';
import type { ReplyContext } from '../../../../common/canonical/codec.ts';
import type { OpaqueState, Part } from '../../../../common/canonical/prompt.ts';
import type { Choice, Reply } from '../../../../common/canonical/reply.ts';
import { isSpecRequest } from '../decode/flat-request.ts';
import { Grounding } from '../decode/grounding.ts';
import { finishOf } from '../finish.ts';
import { logprobsResult } from '../logprobs.ts';
import { usageMetadata } from '../usage.ts';
import { argsOf, mediaPart, PendingSlot, wantsThoughts } from './answer-parts.ts';
import { ClientFrames } from './client-frames.ts';

export function encodeReply(reply: Reply, context: ReplyContext): JsonObject {
  const candidates = reply.choices.map((choice, index) => candidateOf(choice, index, context));
  const dialect = { isSpec: isSpecRequest(context.request), isSse: false };
  return new ClientFrames(dialect, context.call.model, context.createdAt).answer({
    candidates,
    usageMetadata: usageMetadata(context.usage().usage, reply.serviceTier),
    modelVersion: context.call.model,
    responseId: reply.id ?? context.exchangeId,
  });
}

function candidateOf(choice: Choice, index: number, context: ReplyContext): JsonObject {
  const slot = new PendingSlot(context.seal);
  const showsThoughts = context.continues === true || wantsThoughts(context.request);
  const parts: JsonObject[] = [];
  for (const part of choice.parts) {
    if (part.kind === 'tool-call' && choice.cutCalls.has(part.id)) continue;
    const encoded = partOf(part, slot, showsThoughts);
    if (encoded !== undefined) parts.push(encoded);
  }
  if (!slot.isEmpty || parts.length === 0) parts.push({ text: '', ...slot.take() });
  const isRefused = choice.stop === 'stop' && choice.parts.some((part) => part.kind === 'refusal');
  const grounding = groundingOf(choice.parts);
  const logprobs = choice.parts.flatMap((part) => (part.kind === 'text' ? (part.logprobs ?? []) : []));
  return {
    content: { parts, role: 'model' },
    finishReason: isRefused ? 'SAFETY' : finishOf(choice.stop),
    index,
    ...(grounding === undefined ? {} : { groundingMetadata: grounding }),
    ...(logprobs.length === 0 ? {} : { logprobsResult: logprobsResult(logprobs) }),
  };
}

/** undefined for parts that the client does not receive; their opaque state goes into the slot of the next part. */
function partOf(part: Part, slot: PendingSlot, showsThoughts: boolean): JsonObject | undefined {
  switch (part.kind) {
    case 'text':
      addOwn(slot, part);
      return textPart(part.text, slot);
    case 'refusal':
      return textPart(part.text, slot);
    case 'reasoning':
      if (part.opaqueState !== undefined)
        slot.add(part.redacted === true ? 'redacted' : 'reasoning', part.opaqueState.value);
      return showsThoughts && part.text !== '' ? { text: part.text, thought: true } : undefined;
    case 'tool-call':
      addOwn(slot, part);
      return { functionCall: { id: part.id, name: part.name, args: argsOf(part.input) }, ...slot.take() };
    case 'tool-result':
    case 'search':
      return undefined;
    default: {
      const media = mediaPart(part);
      addOwn(slot, part);
      return media === undefined ? undefined : { ...media, ...slot.take() };
    }
  }
}

function addOwn(slot: PendingSlot, { opaqueState }: { readonly opaqueState?: OpaqueState }): void {
  if (opaqueState !== undefined) slot.add('own', opaqueState.value);
}

function textPart(text: string, slot: PendingSlot): JsonObject | undefined {
  return text === '' && slot.isEmpty ? undefined : { text, ...slot.take() };
}

function groundingOf(parts: readonly Part[]): JsonObject | undefined {
  const grounding = new Grounding();
  let text = '';
  for (const part of parts) {
    if (part.kind === 'search') grounding.search(part);
    if (part.kind !== 'text' && part.kind !== 'refusal') continue;
    const blockStart = text.length;
    text += part.text;
    const { citations = [] } = part.kind === 'text' ? part : {};
    for (const citation of citations) grounding.cite(citation, { text, blockStart });
  }
  return grounding.metadata;
}
