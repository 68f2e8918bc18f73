/** Decodes the content blocks of a messages request into parts. Pure. */

import { isObject, type JsonObject, listOf, objectOf, textOf } from '../../../../../core/json/json.ts';
import type { DecodeContext } from '../../../../common/canonical/codec.ts';
import type { CacheMark, MediaPart, Part, SearchPart, Source, TextPart } from '../../../../common/canonical/prompt.ts';
import { bytesSource, urlSource, withField } from '../../../../common/encoding/media.ts';
import { invalid } from '../../../request/checks.ts';
import { booleanMember } from '../../../request/members.ts';
import { decodeCitations, decodeQueries, decodeSearchResults } from '../citations.ts';

/** Lifetime that a `cache_control` requests; undefined: none. */
export function cacheMarkOf(block: JsonObject): { cache?: CacheMark } {
  const control = objectOf(block['cache_control']);
  if (control === undefined) return {};
  return { cache: control['ttl'] === '1h' ? 'long' : 'short' };
}

/**
 * The parts of a turn's content: a text, or a list of blocks. Throws invalid_request that names the block; blocks for this
 * vendor alone are dropped and recorded by their type.
 */
export function decodeContent(content: unknown, field: string, context: DecodeContext): Part[] {
  if (typeof content === 'string') return [{ kind: 'text', text: content }];
  if (!Array.isArray(content)) throw invalid(`The field "${field}" must be a string or a list of blocks.`, field);
  const searches = new Map<string, { queries: string[]; cache?: CacheMark }>();
  const parts = content.flatMap((block, index) => {
    const place = `${field}[${index}]`;
    if (!isObject(block)) throw invalid(`The field "${place}" must be an object.`, place);
    if (block['type'] === 'server_tool_use' && block['name'] === 'web_search') {
      searches.set(textOf(block['id']) ?? '', { queries: decodeQueries(block['input']) });
      return [];
    }
    if (block['type'] === 'web_search_tool_result') return [decodeSearch(block, searches, context)];
    return decodeBlock(block, place, context);
  });
  for (const [id, { queries }] of searches) parts.push({ kind: 'search', id, queries, results: [] });
  return parts;
}

function decodeBlock(block: JsonObject, field: string, context: DecodeContext): Part[] {
  switch (block['type']) {
    case 'text':
      return [decodeText(block, field, context)];
    case 'image':
      return [decodeImage(block, field)];
    case 'document':
      return decodeDocument(block, field);
    case 'search_result':
      return [decodeSearchResult(block, context)];
    case 'thinking':
      return decodeThinking(block, context);
    case 'redacted_thinking':
      return decodeRedacted(block, context);
    case 'tool_use':
      return [decodeCall(block, field)];
    case 'tool_result':
      return [decodeResult(block, field, context)];
    case 'tool_reference':
      return [{ kind: 'text', text: `Tool loaded: ${requiredText(block, 'tool_name', field)}`, ...cacheMarkOf(block) }];
    case 'compaction':
      return typeof block['content'] === 'string' ? [{ kind: 'text', text: block['content'] }] : [];
    default:
      context.dropped.dropField(requiredText(block, 'type', field));
      return [];
  }
}

function decodeText(block: JsonObject, field: string, { open }: DecodeContext): TextPart {
  const { text } = block;
  if (typeof text !== 'string') throw invalid(`The field "${field}.text" must be a string.`, `${field}.text`);
  const citations = decodeCitations(block['citations'], open);
  return { kind: 'text', text, ...cacheMarkOf(block), ...(citations.length === 0 ? {} : { citations }) };
}

function decodeImage(block: JsonObject, field: string): MediaPart {
  return { kind: 'image', source: decodeSource(block, field), ...cacheMarkOf(block) };
}

function decodeSource(block: JsonObject, field: string): Source {
  return withField(sourceOf(block, `${field}.source`), `${field}.source`);
}

function sourceOf(block: JsonObject, place: string): Source {
  const source = objectOf(block['source']);
  if (source === undefined) throw invalid(`The field "${place}" is missing.`, place);
  switch (source['type']) {
    case 'base64':
      return bytesSource(requiredText(source, 'data', place), textOf(source['media_type']));
    case 'url':
      return urlSource(requiredText(source, 'url', place), textOf(source['media_type']));
    case 'file':
      return { form: 'file', id: requiredText(source, 'file_id', place) };
    case 'text':
      return { form: 'text', text: requiredText(source, 'data', place) };
    default:
      throw invalid(`The field "${place}.type" must be base64, url, file, text or content.`, `${place}.type`);
  }
}

/** A document of blocks becomes its text; images in it follow as images. */
function decodeDocument(block: JsonObject, field: string): Part[] {
  const source = objectOf(block['source']);
  const name = textOf(block['title']);
  const about = textOf(block['context']);
  const details = {
    ...(name === undefined ? {} : { name }),
    ...(about === undefined ? {} : { context: about }),
    ...(objectOf(block['citations'])?.['enabled'] === true ? { citations: true } : {}),
    ...cacheMarkOf(block),
  };
  if (source?.['type'] !== 'content') return [{ kind: 'document', source: decodeSource(block, field), ...details }];
  const place = `${field}.source.content`;
  const { content } = source;
  if (typeof content === 'string') return [{ kind: 'document', source: { form: 'text', text: content }, ...details }];
  const blocks = listOf(content).filter(isObject);
  const text = blocks.map((inner) => textOf(inner['text'])).filter((line) => line !== undefined);
  const images = blocks.flatMap((inner, index) =>
    inner['type'] === 'image' ? [decodeImage(inner, `${place}[${index}]`)] : [],
  );
  return [{ kind: 'document', source: { form: 'text', text: text.join('\n') }, ...details }, ...images];
}

/** Search results from the client: a text that begins with its source. */
function decodeSearchResult(block: JsonObject, { dropped }: DecodeContext): TextPart {
  if (objectOf(block['citations'])?.['enabled'] === true) dropped.drop('documentCitations');
  const lines = listOf(block['content']).map((inner) => textOf(objectOf(inner)?.['text']));
  const text = [textOf(block['title']), textOf(block['source']), ...lines].filter((line) => line !== undefined);
  return { kind: 'text', text: text.join('\n'), ...cacheMarkOf(block) };
}

/** A signature that this gateway did not seal is useless to other vendors: only the text stays. */
function decodeThinking(block: JsonObject, { open, onForeignReasoning }: DecodeContext): Part[] {
  const text = textOf(block['thinking']) ?? '';
  const signature = textOf(block['signature']);
  const opaqueState = signature === undefined ? undefined : open(signature);
  if (opaqueState !== undefined) return [{ kind: 'reasoning', text, opaqueState }];
  if (text === '') onForeignReasoning?.();
  return text === '' ? [] : [{ kind: 'reasoning', text }];
}

function decodeRedacted(block: JsonObject, { open, onForeignReasoning }: DecodeContext): Part[] {
  const data = textOf(block['data']);
  const opaqueState = data === undefined ? undefined : open(data);
  if (opaqueState === undefined) onForeignReasoning?.();
  return opaqueState === undefined ? [] : [{ kind: 'reasoning', text: '', opaqueState, redacted: true }];
}

function decodeCall(block: JsonObject, field: string): Part {
  const input = block['input'] ?? {};
  if (!isObject(input)) throw invalid(`The field "${field}.input" must be an object.`, `${field}.input`);
  const id = requiredText(block, 'id', field);
  const name = requiredText(block, 'name', field);
  return { kind: 'tool-call', id, name, input: JSON.stringify(input), ...cacheMarkOf(block) };
}

function decodeResult(block: JsonObject, field: string, context: DecodeContext): Part {
  const content = block['content'] ?? [];
  const place = `${field}.content`;
  const parts = decodeContent(content, place, context);
  for (const { kind } of parts) {
    if (kind !== 'text' && kind !== 'image' && kind !== 'document')
      throw invalid(`The field "${place}" may hold texts, images and documents alone.`, place);
  }
  return {
    kind: 'tool-result',
    callId: requiredText(block, 'tool_use_id', field),
    parts: parts as (TextPart | MediaPart)[],
    ...(booleanMember(block, 'is_error', `${field}.is_error`) === true ? { isError: true } : {}),
    ...cacheMarkOf(block),
  };
}

function decodeSearch(
  block: JsonObject,
  searches: Map<string, { queries: string[] }>,
  { open }: DecodeContext,
): SearchPart {
  const id = textOf(block['tool_use_id']) ?? '';
  const queries = searches.get(id)?.queries ?? [];
  searches.delete(id);
  return { kind: 'search', id, queries, results: decodeSearchResults(block['content'], open) };
}

/** A required member. Throws invalid_request that names it. */
export function requiredText(json: JsonObject, member: string, field: string): string {
  const value = textOf(json[member]);
  if (value === undefined) throw invalid(`The field "${field}.${member}" must be a string.`, `${field}.${member}`);
  return value;
}
