/**
 * Encodes texts, images and files as content of a responses upstream's items. Throws for content that the upstream does not
 * accept.
 */

import type { JsonObject } from '../../../../../core/json/json.ts';
import type { EncodeContext } from '../../../../common/canonical/codec.ts';
import type { CacheMark, MediaPart, Part, TextPart, ToolResultPart } from '../../../../common/canonical/prompt.ts';
import { dataUrl, isMedia } from '../../../../common/encoding/media.ts';

/** A tool's output, and the media that are sent separately. */
export interface EncodedOutput {
  readonly output: string | readonly JsonObject[];
  readonly rest: readonly MediaPart[];
}

const errorMark = 'Error: ';

export class ContentWriter {
  readonly #context: EncodeContext;
  /** The upstream accepts cache marks. */
  readonly takesMarks: boolean;

  constructor(context: EncodeContext) {
    this.#context = context;
    this.takesMarks = context.traits.cache_marks === true;
  }

  /** Parts that a user message cannot hold are omitted. */
  parts(parts: readonly Part[]): JsonObject[] {
    return parts.flatMap((part) => {
      if (part.kind === 'text') return [this.#text(part)];
      if (part.kind === 'refusal') return [{ type: 'input_text', text: part.text }];
      return isMedia(part) ? this.#media(part) : [];
    });
  }

  /** A string if all of it is text. */
  output({ parts, isError = false }: ToolResultPart): EncodedOutput {
    const mark = isError ? errorMark : '';
    const texts = parts.filter((part) => part.kind === 'text');
    const media = parts.filter(isMedia);
    const asText = mark + texts.map(({ text }) => text).join('\n');
    for (const { cache } of texts) this.noteMark(cache);
    if (media.length === 0) return { output: asText, rest: [] };
    if (this.#context.traits.tool_result_media === false) return { output: asText, rest: media };
    const content = parts.flatMap((part) => (part.kind === 'text' ? [inputText(part.text)] : this.#media(part)));
    return { output: isError ? [inputText(errorMark.trim()), ...content] : content, rest: [] };
  }

  /** Notes the mark of content that cannot have one. */
  noteMark(cache: CacheMark | undefined): void {
    if (cache !== undefined) this.#context.dropped.drop('cacheMarks');
  }

  #text({ text, cache }: TextPart): JsonObject {
    return { ...inputText(text), ...this.#mark(cache) };
  }

  #media(media: MediaPart): JsonObject[] {
    if (media.citations === true) this.#context.dropped.drop('documentCitations');
    if (media.source.form === 'url' && media.name !== undefined) this.#context.dropped.drop('documentNames');
    const context = media.context === undefined ? [] : [inputText(media.context)];
    const mark = this.#mark(media.cache);
    return [...context, { ...(media.kind === 'image' ? this.#image(media) : this.#file(media)), ...mark }];
  }

  /** The official schema requires `detail`. */
  #image({ source, detail = 'auto' }: MediaPart): JsonObject {
    const url = source.form === 'file' ? '' : dataUrl(source);
    return { type: 'input_image', image_url: url, detail };
  }

  #file({ source, name }: MediaPart): JsonObject {
    switch (source.form) {
      case 'text':
        return inputText(name === undefined ? source.text : `${name}\n\n${source.text}`);
      case 'url':
        return { type: 'input_file', file_url: source.url };
      case 'bytes':
        return { type: 'input_file', filename: name ?? fileName(source.mediaType), file_data: dataUrl(source) };
      case 'file':
        return { type: 'input_file', file_id: source.id };
    }
  }

  #mark(cache: CacheMark | undefined): JsonObject {
    if (cache === undefined) return {};
    if (this.takesMarks)
      return { prompt_cache_breakpoint: { mode: 'explicit', ttl: cache === 'long' ? '12h' : '30m' } };
    this.noteMark(cache);
    return {};
  }
}

function inputText(text: string): JsonObject {
  return { type: 'input_text', text };
}

/** Why the model does not accept the medium; text is always accepted. */
export function problemOf({ kind, source }: MediaPart, { traits }: EncodeContext): string | undefined {
  if (kind === 'audio') return 'does not hear';
  if (kind === 'video') return 'does not see films';
  if (source.form === 'file') return 'cannot read files that are kept elsewhere';
  if (source.form === 'text' || (traits.inputs ?? [kind]).includes(kind)) return undefined;
  return kind === 'image' ? 'does not see images' : 'does not read files';
}

/** Upstreams require a file name with an extension. */
function fileName(mediaType: string): string {
  const ending = mediaType === 'text/plain' ? 'txt' : mediaType.slice(mediaType.indexOf('/') + 1);
  return `document.${/^[a-z0-9]{1,8}$/.test(ending) ? ending : 'bin'}`;
}
