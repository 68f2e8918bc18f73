/** Encodes a whole answer for clients of the messages protocol. Pure. */

import { type JsonObject, tryParse } from '../../../../../core/json/json.ts';
import type { ReplyContext } from '../../../../common/canonical/codec.ts';
import type { Citation, Part, ToolCallPart } from '../../../../common/canonical/prompt.ts';
import type { Reply } from '../../../../common/canonical/reply.ts';
import { mediaLink } from '../../../../common/encoding/media.ts';
import { citationJson } from '../citations.ts';
import { usageJson } from '../usage.ts';
import {
  endingOf,
  inputObjectJson,
  messageHead,
  redactedBlock,
  type Seal,
  searchBlocks,
  thinkingBlock,
  toolUseBlock,
} from './answer-blocks.ts';

/** The protocol has one answer: the first choice. Calls that were cut off are omitted, as the client must not run them. */
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
      if (part.redacted) return [redactedBlock(part.opaqueState?.value, seal)];
      return [thinkingBlock(part.text, part.opaqueState?.value, seal)];
    case 'tool-call':
      return callBlocks(part, seal);
    case 'search':
      return part.queries.length === 0 ? [] : searchBlocks(part, seal);
    case 'tool-result':
      return [];
    default: {
      const text = mediaLink(part);
      return text === '' ? [] : [{ type: 'text', text, citations: null }];
    }
  }
}

/** The signature of a call is in an empty thinking block before it: calls have no member for one. */
function callBlocks({ id, name, input, custom = false, opaqueState }: ToolCallPart, seal: Seal): JsonObject[] {
  const call = toolUseBlock(id, name, tryParse(inputObjectJson(input, custom)) as JsonObject);
  return opaqueState === undefined ? [call] : [thinkingBlock('', opaqueState.value, seal), call];
}

function citationsOf(citations: readonly Citation[] | undefined, seal: Seal): JsonObject[] | null {
  const encoded = (citations ?? [])
    .map((citation) => citationJson(citation, seal))
    .filter((json) => json !== undefined);
  return encoded.length === 0 ? null : encoded;
}
