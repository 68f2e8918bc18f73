/** Words texts, images and files as content of a responses upstream's items. Throws where it cannot see what it is given. */
import type { CacheMark, MediaPart, Part, TextPart, ToolResultPart } from '../../canon.ts';
import type { EncodeContext } from '../../codec.ts';
import type { JsonObject } from '../../json.ts';
import { unshownText } from '../../wording/history.ts';
import { dataUrl, placeOf } from '../../wording/media.ts';

/** A tool's output, and the media that must be shown apart. */
export interface WordedOutput {
  readonly output: string | readonly JsonObject[];
  readonly rest: readonly MediaPart[];
}

const errorMark = 'Error: ';

export class ContentWriter {
  readonly #context: EncodeContext;
  /** The upstream takes marks that say what to cache. */
  readonly takesMarks: boolean;

  constructor(context: EncodeContext) {
    this.#context = context;
    this.takesMarks = context.traits.cache_marks === true;
  }

  /** Parts that no user can say are left out. */
  parts(parts: readonly Part[]): JsonObject[] {
    return parts.flatMap((part) => {
      if (part.kind === 'text') return [this.#text(part)];
      if (part.kind === 'refusal') return [{ type: 'input_text', text: part.text }];
      return isMedia(part) ? this.#media(part) : [];
    });
  }

  /** As text where it is text alone. */
  output({ parts: given, isError = false }: ToolResultPart): WordedOutput {
    const parts = given.map((part) => this.#visible(part));
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

  /** For what can carry no mark. */
  noteMark(cache: CacheMark | undefined): void {
    if (cache !== undefined) this.#context.losses.drop('cacheMarks');
  }

  #text({ text, cache }: TextPart): JsonObject {
    return { ...inputText(text), ...this.#mark(cache) };
  }

  #media(media: MediaPart): JsonObject[] {
    this.#check(media);
    if (media.citations === true) this.#context.losses.drop('documentCitations');
    const context = media.context === undefined ? [] : [inputText(media.context)];
    const mark = this.#mark(media.cache);
    return [...context, { ...(media.kind === 'image' ? this.#image(media) : this.#file(media)), ...mark }];
  }

  /** What a tool showed, or words in its place where this model cannot see it. */
  #visible(part: TextPart | MediaPart): TextPart | MediaPart {
    if (part.kind === 'text') return part;
    const { kind, source } = part;
    const { losses, traits } = this.#context;
    const isTaken = kind !== 'audio' && kind !== 'video' && source.form !== 'file';
    if (source.form === 'text' || (isTaken && (traits.inputs ?? [kind]).includes(kind))) return part;
    losses.drop(source.form === 'file' ? 'file' : kind);
    return { kind: 'text', text: unshownText(kind) };
  }

  #check({ kind, source }: MediaPart): void {
    const { losses, traits } = this.#context;
    const at = placeOf(source);
    if (kind === 'audio') losses.refuse('audio', 'does not hear', at);
    if (kind === 'video') losses.refuse('video', 'does not see films', at);
    if (source.form === 'file') losses.refuse('file', 'cannot read files that are kept elsewhere', at);
    if (source.form !== 'text' && traits.inputs !== undefined && !traits.inputs.includes(kind)) {
      losses.refuse(kind, kind === 'image' ? 'does not see images' : 'does not read files', at);
    }
  }

  #image({ source, detail }: MediaPart): JsonObject {
    const url = source.form === 'file' ? '' : dataUrl(source);
    return { type: 'input_image', image_url: url, ...(detail === undefined ? {} : { detail }) };
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

function isMedia(part: Part): part is MediaPart {
  return part.kind === 'image' || part.kind === 'document' || part.kind === 'audio' || part.kind === 'video';
}

/** Upstreams want a name with an ending. */
function fileName(mediaType: string): string {
  const ending = mediaType === 'text/plain' ? 'txt' : mediaType.slice(mediaType.indexOf('/') + 1);
  return `document.${/^[a-z0-9]{1,8}$/.test(ending) ? ending : 'bin'}`;
}
