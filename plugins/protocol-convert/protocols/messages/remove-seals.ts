/** Removes the gateway's own sealed texts from a relayed request: its vendor cannot read them. Pure. */

import { isObject, type JsonObject, listOf, objectOf } from '../../../../core/json/json.ts';
import { isSealed } from '../../encoding/sealed-text.ts';

/** The request without sealed thinking, searches and citations; turns that would be empty contain a full stop. */
export function withoutSeals(json: JsonObject): JsonObject {
  const messages = listOf(json['messages']);
  const thinking = messages.flatMap((message) => listOf(objectOf(message)?.['content']).filter(isThinking));
  // Signatures depend on their predecessors: the removed thinking is always a prefix of the history's.
  const dropped = new Set<unknown>(thinking.slice(0, thinking.findLastIndex(isSealedThinking) + 1));
  return { ...json, messages: messages.map((message) => cleanMessage(message, dropped)) };
}

function isThinking(block: unknown): boolean {
  const type = objectOf(block)?.['type'];
  return type === 'thinking' || type === 'redacted_thinking';
}

function isSealedThinking(block: unknown): boolean {
  return isSealed(objectOf(block)?.['signature']) || isSealed(objectOf(block)?.['data']);
}

function cleanMessage(message: unknown, dropped: ReadonlySet<unknown>): unknown {
  const content = objectOf(message)?.['content'];
  if (!isObject(message) || !Array.isArray(content)) return message;
  const searches = sealedSearches(content);
  const kept = content.filter((block) => !dropped.has(block) && !searches.has(searchIdOf(block)));
  const clean = kept.map(withoutSealedCitations);
  return { ...message, content: clean.length === 0 && content.length > 0 ? [{ type: 'text', text: '.' }] : clean };
}

/** Ids of searches with results from another vendor. */
function sealedSearches(content: readonly unknown[]): ReadonlySet<unknown> {
  const sealed = content.filter((block) =>
    listOf(objectOf(block)?.['content']).some((result) => isSealed(objectOf(result)?.['encrypted_content'])),
  );
  return new Set(sealed.map(searchIdOf));
}

/** A string if the block is part of a search; other blocks never match. */
function searchIdOf(block: unknown): unknown {
  const { type, id, tool_use_id: callId } = objectOf(block) ?? {};
  if (type === 'server_tool_use') return id;
  return type === 'web_search_tool_result' ? callId : Symbol.for('no search');
}

function withoutSealedCitations(block: unknown): unknown {
  const citations = listOf(objectOf(block)?.['citations']);
  const kept = citations.filter((citation) => !isSealed(objectOf(citation)?.['encrypted_index']));
  if (!isObject(block) || kept.length === citations.length) return block;
  const { citations: _citations, ...rest } = block;
  return kept.length === 0 ? rest : { ...rest, citations: kept };
}
