/** Words the parts of a Prompt as content blocks for an upstream of the messages protocol. Pure. */
import type {
  CacheMark,
  Citation,
  Keepsake,
  MediaPart,
  Part,
  SearchPart,
  TextPart,
  ToolResultPart,
} from '../../canon.ts';
import type { EncodeContext } from '../../codec.ts';
import type { JsonObject } from '../../json.ts';
import { parseExact } from '../../wording/exact-json.ts';
import { noOutputText, unshownText } from '../../wording/history.ts';
import { documentTitle, placeOf, plainText } from '../../wording/media.ts';
import { legalCallId } from '../../wording/tool-ids.ts';
import type { ToolNamer } from '../../wording/tool-names.ts';
import { inputObjectJson, searchBlocks } from './answer-blocks.ts';

export interface BlockContext {
  readonly target: EncodeContext;
  readonly namer: ToolNamer;
}

/** Types of pictures that this protocol takes. */
const imageTypes = new Set(['image/jpeg', 'image/png', 'image/gif', 'image/webp']);

/** What may be given back: made by this very upstream, and not nothing. */
export function ownValue(keepsake: Keepsake | undefined, maker: string): string | undefined {
  return keepsake?.maker === maker && keepsake.value !== '' ? keepsake.value : undefined;
}

/** The member that marks a block for the prompt cache. */
export function marked(cache: CacheMark | undefined): JsonObject {
  if (cache === undefined) return {};
  return { cache_control: cache === 'long' ? { type: 'ephemeral', ttl: '1h' } : { type: 'ephemeral' } };
}

/** The blocks of one part; none where nothing of it can be said. Reasoning is worded by `encode-turns.ts`. */
export function encodePart(part: Exclude<Part, { kind: 'reasoning' }>, context: BlockContext): JsonObject[] {
  switch (part.kind) {
    case 'text':
      return [encodeText(part, context)];
    case 'refusal':
      return [{ type: 'text', text: part.text }];
    case 'tool-call': {
      const input = parseExact(inputObjectJson(part.input, part.custom ?? false)) as JsonObject;
      const name = context.namer.nameFor(part.name, part.namespace);
      return [{ type: 'tool_use', id: legalCallId(part.id, 'messages'), name, input, ...marked(part.cache) }];
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
  if (kept.length < own.length) target.losses.drop('searchHistory');
  return { type: 'text', text, ...(kept.length === 0 ? {} : { citations: kept }), ...marked(cache) };
}

/** Only the vendor's own citations of its own searches can be given back. */
function encodeCitation(citation: Citation, maker: string): JsonObject | undefined {
  const index = ownValue(citation.keepsake, maker);
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
  if (part.results.some((result) => ownValue(result.keepsake, target.maker) === undefined)) {
    target.losses.drop('searchHistory');
    return [];
  }
  return searchBlocks(part, (value) => value);
}

/** Media that this model does not take inside results follow the results: `resultMedia`. */
function encodeResult(part: ToolResultPart, context: BlockContext): JsonObject[] {
  const shown = part.parts.map((inner) => visible(inner, context));
  const inline = shown.filter((inner) => inner.kind === 'text' || takesResultMedia(context));
  const blocks = inline.flatMap((inner) => encodePart(inner, context));
  const [only] = blocks;
  const isPlain = blocks.length === 1 && only?.['type'] === 'text' && only['cache_control'] === undefined;
  const content = isPlain ? only?.['text'] : blocks.length === 0 ? noOutputText : blocks;
  return [
    {
      type: 'tool_result',
      tool_use_id: legalCallId(part.callId, 'messages'),
      content,
      ...(part.isError ? { is_error: true } : {}),
      ...marked(part.cache),
    },
  ];
}

/** What a tool showed, or words in its place where this model cannot see it. */
function visible(part: TextPart | MediaPart, { target }: BlockContext): TextPart | MediaPart {
  if (part.kind === 'text' || takes(part, target)) return part;
  target.losses.drop(part.source.form === 'file' ? 'file' : part.kind);
  return { kind: 'text', text: unshownText(part.kind), ...(part.cache === undefined ? {} : { cache: part.cache }) };
}

function takes({ kind, source }: MediaPart, { traits }: EncodeContext): boolean {
  if (kind === 'document' && plainText(source) !== undefined) return true;
  if (kind === 'audio' || kind === 'video' || source.form === 'file') return false;
  if (traits.inputs !== undefined && !traits.inputs.includes(kind)) return false;
  if (source.form !== 'bytes') return source.form === 'url';
  return kind === 'image' ? imageTypes.has(source.mediaType) : source.mediaType === 'application/pdf';
}

function takesResultMedia({ target }: BlockContext): boolean {
  return target.traits.tool_result_media ?? true;
}

/** Media of results that must stand beside them. */
export function resultMedia(part: Part, context: BlockContext): JsonObject[] {
  if (part.kind !== 'tool-result' || takesResultMedia(context)) return [];
  const media = part.parts.filter((inner) => inner.kind !== 'text' && takes(inner, context.target));
  return media.flatMap((inner) => encodePart(inner, context));
}

function encodeMedia(part: MediaPart, { target }: BlockContext): JsonObject {
  const { losses, traits } = target;
  const { kind, source } = part;
  const at = placeOf(source);
  if (kind === 'audio' || kind === 'video') losses.refuse(kind, `takes no ${kind === 'audio' ? 'sound' : 'films'}`, at);
  if (source.form === 'file') losses.refuse('file', 'cannot read files that another vendor keeps', at);
  const isText = kind === 'document' && plainText(source) !== undefined;
  if (!isText && traits.inputs !== undefined && !traits.inputs.includes(kind))
    losses.refuse(kind, `takes no ${kind}s`, at);
  return kind === 'image' ? encodeImage(part, target) : encodeDocument(part, target);
}

function encodeImage({ source, detail, cache }: MediaPart, { losses }: EncodeContext): JsonObject {
  if (detail !== undefined && detail !== 'auto') losses.drop('detail');
  if (source.form === 'url') return { type: 'image', source: { type: 'url', url: source.url }, ...marked(cache) };
  if (source.form !== 'bytes' || !imageTypes.has(source.mediaType))
    return losses.refuse('image', 'takes JPEG, PNG, GIF and WebP images alone', placeOf(source));
  const { mediaType, base64 } = source;
  return { type: 'image', source: { type: 'base64', media_type: mediaType, data: base64 }, ...marked(cache) };
}

function encodeDocument(part: MediaPart, { losses }: EncodeContext): JsonObject {
  const { source, name, context, citations, cache } = part;
  const words = {
    ...(name === undefined ? {} : { title: documentTitle(name) }),
    ...(context === undefined ? {} : { context }),
    ...(citations === true ? { citations: { enabled: true } } : {}),
    ...marked(cache),
  };
  if (source.form === 'url') return { type: 'document', source: { type: 'url', url: source.url }, ...words };
  const text = plainText(source);
  if (text !== undefined)
    return { type: 'document', source: { type: 'text', media_type: 'text/plain', data: text }, ...words };
  if (source.form !== 'bytes' || source.mediaType !== 'application/pdf')
    return losses.refuse('document', 'reads PDF and plain text documents alone', placeOf(source));
  const { mediaType, base64 } = source;
  return { type: 'document', source: { type: 'base64', media_type: mediaType, data: base64 }, ...words };
}
