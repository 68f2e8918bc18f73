/** Words a whole answer for a client. Pure. */
import type { Part } from '../../canon.ts';
import type { ReplyContext } from '../../codec.ts';
import type { JsonObject } from '../../json.ts';
import type { Choice, Reply } from '../../reply.ts';
import { argsOf, asksThoughts, mediaPart, PendingSlot } from './answer-parts.ts';
import { ClientFrames } from './client-frames.ts';
import { finishOf } from './finish.ts';
import { isSnake } from './flat-request.ts';
import { Grounding } from './grounding.ts';
import { logprobsResult } from './logprobs.ts';
import { usageMetadata } from './usage.ts';

export function encodeReply(reply: Reply, context: ReplyContext): JsonObject {
  const candidates = reply.choices.map((choice, index) => candidateOf(choice, index, context));
  const dialect = { isSnake: isSnake(context.request), isSse: false };
  return new ClientFrames(dialect, context.call.model, context.createdAt).answer({
    candidates,
    usageMetadata: usageMetadata(context.usage().usage, reply.serviceTier),
    modelVersion: context.call.model,
    responseId: reply.id ?? context.exchangeId,
  });
}

function candidateOf(choice: Choice, index: number, context: ReplyContext): JsonObject {
  const slot = new PendingSlot(context.seal);
  const showsThoughts = asksThoughts(context.request);
  const parts: JsonObject[] = [];
  for (const part of choice.parts) {
    if (part.kind === 'tool-call' && choice.cutCalls.has(part.id)) continue;
    const worded = partOf(part, slot, showsThoughts);
    if (worded !== undefined) parts.push(worded);
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

/** undefined for what the client is not shown; keepsakes of it wait in the slot for the next part. */
function partOf(part: Part, slot: PendingSlot, showsThoughts: boolean): JsonObject | undefined {
  switch (part.kind) {
    case 'text':
    case 'refusal':
      if (part.kind === 'text' && part.keepsake !== undefined) slot.add('own', part.keepsake.value);
      return part.text === '' && slot.isEmpty ? undefined : { text: part.text, ...slot.take() };
    case 'reasoning':
      if (part.keepsake !== undefined) slot.add(part.redacted === true ? 'redacted' : 'reasoning', part.keepsake.value);
      return showsThoughts && part.text !== '' ? { text: part.text, thought: true } : undefined;
    case 'tool-call':
      if (part.keepsake !== undefined) slot.add('own', part.keepsake.value);
      return { functionCall: { id: part.id, name: part.name, args: argsOf(part.input) }, ...slot.take() };
    case 'tool-result':
    case 'search':
      return undefined;
    default: {
      const media = mediaPart(part);
      return media === undefined ? undefined : { ...media, ...slot.take() };
    }
  }
}

function groundingOf(parts: readonly Part[]): JsonObject | undefined {
  const grounding = new Grounding();
  let text = '';
  for (const part of parts) {
    if (part.kind === 'search') grounding.search(part);
    else if (part.kind === 'text' || part.kind === 'refusal') {
      const blockStart = text.length;
      text += part.text;
      if (part.kind === 'text')
        for (const citation of part.citations ?? []) grounding.cite(citation, { text, blockStart });
    }
  }
  return grounding.metadata;
}
