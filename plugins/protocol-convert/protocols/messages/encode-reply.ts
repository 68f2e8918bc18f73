/** Words a whole answer for clients of the messages protocol. Pure. */
import type { Citation, Part, ToolCallPart } from '../../canon.ts';
import type { ReplyContext } from '../../codec.ts';
import type { JsonObject } from '../../json.ts';
import { tryParse } from '../../json.ts';
import type { Reply } from '../../reply.ts';
import {
  endingOf,
  inputObjectJson,
  mediaText,
  messageHead,
  redactedBlock,
  type Seal,
  searchBlocks,
  thinkingBlock,
  toolUseBlock,
} from './answer-blocks.ts';
import { citationJson } from './citations.ts';
import { usageJson } from './usage.ts';

/** The protocol gives one answer: the first choice. Calls that were cut off are left out, as nobody may carry them out. */
export function encodeReply(reply: Reply, context: ReplyContext): JsonObject {
  const choice = reply.choices[0];
  const seal: Seal = (value) => context.seal(value);
  const content: JsonObject[] = [];
  let refusal = '';
  for (const part of choice?.parts ?? []) {
    if (part.kind === 'refusal') refusal += part.text;
    if (part.kind === 'tool-call' && choice?.cutCalls.has(part.id)) continue;
    content.push(...blocksOf(part, seal));
  }
  return {
    ...messageHead(context.exchangeId, context.call.model),
    content,
    ...endingOf(choice?.stop ?? 'stop', choice?.sequence, refusal),
    container: null,
    usage: usageJson(context.usage().usage, reply.serviceTier),
  };
}

function blocksOf(part: Part, seal: Seal): readonly JsonObject[] {
  switch (part.kind) {
    case 'text':
      return part.text === '' ? [] : [{ type: 'text', text: part.text, citations: citationsOf(part.citations, seal) }];
    case 'refusal':
      return part.text === '' ? [] : [{ type: 'text', text: part.text, citations: null }];
    case 'reasoning':
      if (part.redacted) return [redactedBlock(part.keepsake?.value, seal)];
      return [thinkingBlock(part.text, part.keepsake?.value, seal)];
    case 'tool-call':
      return callBlocks(part, seal);
    case 'search':
      return searchBlocks(part, seal);
    case 'tool-result':
      return [];
    default: {
      const text = mediaText(part);
      return text === '' ? [] : [{ type: 'text', text, citations: null }];
    }
  }
}

/** A signature of the call itself stands in an empty thinking block in front of it: calls have no place for one. */
function callBlocks({ id, name, input, custom = false, keepsake }: ToolCallPart, seal: Seal): JsonObject[] {
  const call = toolUseBlock(id, name, tryParse(inputObjectJson(input, custom)) as JsonObject);
  return keepsake === undefined ? [call] : [thinkingBlock('', keepsake.value, seal), call];
}

function citationsOf(citations: readonly Citation[] | undefined, seal: Seal): JsonObject[] | null {
  const worded = (citations ?? []).map((citation) => citationJson(citation, seal)).filter((json) => json !== undefined);
  return worded.length === 0 ? null : worded;
}
