/** Encodes the parts of a Prompt as content blocks for an upstream of the messages protocol. Pure. */

import type { JsonObject } from '../../../../../core/json/json.ts';
import type { EncodeContext } from '../../../../common/canonical/codec.ts';
import type {
  CacheMark,
  Citation,
  MediaPart,
  OpaqueState,
  Part,
  SearchPart,
  TextPart,
  ToolResultPart,
} from '../../../../common/canonical/prompt.ts';
import { noOutputText } from '../../../../common/encoding/history.ts';
import { documentTitle, plainText } from '../../../../common/encoding/media.ts';
import { legalCallId } from '../../../../common/encoding/tool-ids.ts';
import type { ToolNamer } from '../../../../common/encoding/tool-names.ts';
import { inputObject, searchBlocks } from './answer-blocks.ts';

export interface BlockContext {
  readonly target: EncodeContext;
  readonly namer: ToolNamer;
}

/** Image types that this protocol accepts. */
const imageTypes = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp']);

/** Opaque state that may be returned: made by this upstream, and not empty. */
export function ownValue(opaqueState: OpaqueState | undefined, maker: string): string | undefined {
  return opaqueState?.maker === maker && opaqueState.value !== '' ? opaqueState.value : undefined;
}

/** The member that marks a block for the prompt cache. */
export function marked(cache: CacheMark | undefined): JsonObject {
  if (cache === undefined) return {};
  return { cache_control: cache === 'long' ? { type: 'ephemeral', ttl: '1h' } : { type: 'ephemeral' } };
}

/** The blocks of one part; empty if the protocol cannot express it. `turns.ts` encodes reasoning. */
export function encodePart(part: Exclude<Part, { kind: 'reasoning' }>, context: BlockContext): JsonObject[] {
  switch (part.kind) {
    case 'text':
      return [encodeText(part, context)];
    case 'refusal':
      return [{ type: 'text', text: part.text }];
    case 'tool-call': {
      const input = inputObject(part.input, part.custom ?? false);
      const name = context.namer.nameFor(part.name, part.namespace);
      const id = legalCallId(part.id, 'messages', context.target.ownCallIds);
      return [{ type: 'tool_use', id, name, input, ...marked(part.cache) }];
    }
    case 'tool-result':
      return encodeResult(part, context);
    case 'search':
      return encodeSearch(part, context);
    default:
      return [encodeMedia(part, context)];
  }
}

function encodeText({ text, cache, citations }: TextPart, { target }: BlockContext): JsonObject {
  const own = (citations ?? []).map((citation) => encodeCitation(citation, target.maker));
  const kept = own.filter((citation) => citation !== undefined);
  if (kept.length < own.length) target.dropped.drop('citedHistory');
  return { type: 'text', text, ...(kept.length === 0 ? {} : { citations: kept }), ...marked(cache) };
}

/** Only the vendor's own citations of its own searches can be returned. */
function encodeCitation(citation: Citation, maker: string): JsonObject | undefined {
  const index = ownValue(citation.opaqueState, maker);
  if (index === undefined || citation.url === undefined) return undefined;
  return {
    type: 'web_search_result_location',
    cited_text: citation.quote ?? '',
    url: citation.url,
    title: citation.title ?? null,
    encrypted_index: index,
  };
}

function encodeSearch(part: SearchPart, { target }: BlockContext): JsonObject[] {
  if (part.results.some((result) => ownValue(result.opaqueState, target.maker) === undefined)) {
    target.dropped.drop('searchHistory');
    return [];
  }
  return searchBlocks(part, (value) => value);
}

/** Media that this model does not accept inside results follow the results: `resultMedia`. */
function encodeResult(part: ToolResultPart, context: BlockContext): JsonObject[] {
  const inline = part.parts.filter((inner) => inner.kind === 'text' || takesResultMedia(context));
  const blocks = inline.flatMap((inner) => encodePart(inner, context));
  const [only] = blocks;
  const isPlain = blocks.length === 1 && only?.['type'] === 'text' && only['cache_control'] === undefined;
  const content = isPlain ? only?.['text'] : blocks.length === 0 ? noOutputText : blocks;
  return [
    {
      type: 'tool_result',
      tool_use_id: legalCallId(part.callId, 'messages', context.target.ownCallIds),
      content,
      ...(part.isError ? { is_error: true } : {}),
      ...marked(part.cache),
    },
  ];
}

/** Why this model does not accept a medium of this kind and form. */
export function problemOf({ kind, source }: MediaPart, { traits }: EncodeContext): string | undefined {
  if (kind === 'document' && plainText(source) !== undefined) return undefined;
  if (kind === 'audio' || kind === 'video') return `takes no ${kind === 'audio' ? 'sound' : 'films'}`;
  if (source.form === 'file') return 'cannot read files that another vendor keeps';
  if (traits.inputs !== undefined && !traits.inputs.includes(kind)) return `takes no ${kind}s`;
  if (source.form === 'url') return undefined;
  const { mediaType } = source.form === 'bytes' ? source : { mediaType: 'text/plain' };
  if (kind === 'image') return imageTypes.has(mediaType) ? undefined : 'takes JPEG, PNG, GIF and WebP images alone';
  return mediaType === 'application/pdf' ? undefined : 'reads PDF and plain text documents alone';
}

function takesResultMedia({ target }: BlockContext): boolean {
  return target.traits.tool_result_media ?? true;
}

/** Media of results that are sent beside the results. */
export function resultMedia(part: Part, context: BlockContext): JsonObject[] {
  if (part.kind !== 'tool-result' || takesResultMedia(context)) return [];
  const media = part.parts.filter((inner) => inner.kind !== 'text');
  return media.flatMap((inner) => encodePart(inner, context));
}

function encodeMedia(part: MediaPart, { target }: BlockContext): JsonObject {
  return part.kind === 'image' ? encodeImage(part, target) : encodeDocument(part);
}

function encodeImage({ source, detail, cache }: MediaPart, { dropped }: EncodeContext): JsonObject {
  if (detail !== undefined && detail !== 'auto') dropped.drop('detail');
  return { type: 'image', source: encodeSource(source), ...marked(cache) };
}

function encodeDocument({ source, name, context, citations, cache }: MediaPart): JsonObject {
  const details = {
    ...(name === undefined ? {} : { title: documentTitle(name) }),
    ...(context === undefined ? {} : { context }),
    ...(citations === true ? { citations: { enabled: true } } : {}),
    ...marked(cache),
  };
  const text = plainText(source);
  const encoded = text === undefined ? encodeSource(source) : { type: 'text', media_type: 'text/plain', data: text };
  return { type: 'document', source: encoded, ...details };
}

function encodeSource(source: MediaPart['source']): JsonObject {
  if (source.form === 'url') return { type: 'url', url: source.url };
  return source.form === 'bytes' ? { type: 'base64', media_type: source.mediaType, data: source.base64 } : {};
}
