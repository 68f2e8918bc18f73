/** The texts of a form: one that is in memory, or one that its endpoint has read as it came. */

import { invalid } from '../../core/json/request-body.ts';
import { applyEdits } from '../../core/json/splice.ts';
import { readMultipart } from '../common/kit/forms/multipart.ts';
import type { StreamedFormPart } from '../common/kit/forms/streamed-form.ts';
import type { PromptText, PromptTexts } from '../common/wire/prompt-rules.ts';

/** Fields that choose a model, a form of the answer, or the like. */
const settings = new Set(['model', 'response_format', 'stream', 'n', 'size', 'quality', 'output_format', 'background']);
const contents = new Set(['prompt', 'input', 'text']);

function textOf(field: string, text: string): PromptText {
  return { role: 'user', kind: contents.has(field) ? 'text' : 'other', field, turn: 1, text };
}

abstract class FormTexts<Place> implements PromptTexts {
  readonly texts: PromptText[] = [];
  readonly unread: string[] = [];
  readonly #places = new Map<PromptText, Place>();

  protected add(name: string, text: string | undefined, place: Place): void {
    if (text === undefined) this.unread.push(name);
    else if (!settings.has(name)) this.#keep(textOf(name, text), place);
  }

  #keep(text: PromptText, place: Place, index = this.texts.length): void {
    this.texts[index] = text;
    this.#places.set(text, place);
  }

  replace(text: PromptText, by: string): void {
    const place = this.#places.get(text);
    if (place === undefined) throw new Error('the text is none of this request, or was replaced before');
    this.#places.delete(text);
    this.#keep({ ...text, text: by }, place, this.texts.indexOf(text));
    this.write(place, by);
  }

  protected abstract write(place: Place, by: string): void;
}

/** A whole form. */
export class WholeForm extends FormTexts<{ readonly start: number; readonly end: number }> {
  readonly #bytes: Uint8Array;
  readonly #boundary: string;
  readonly #changed = new Map<number, { readonly start: number; readonly end: number; readonly text: string }>();

  constructor(bytes: Uint8Array, boundary: string) {
    super();
    this.#bytes = bytes;
    this.#boundary = boundary;
    for (const { name, filename, bytes: value } of readMultipart(bytes, boundary)) {
      const start = value.byteOffset - bytes.byteOffset;
      this.add(name, filename === undefined ? value.toString('utf8') : undefined, { start, end: start + value.length });
    }
  }

  protected write(place: { readonly start: number; readonly end: number }, text: string): void {
    if (text.includes(`--${this.#boundary}`)) throw invalid('A text of the form has the boundary of the form in it.');
    this.#changed.set(place.start, { ...place, text });
  }

  written(): Uint8Array | undefined {
    return this.#changed.size === 0 ? undefined : applyEdits(this.#bytes, [...this.#changed.values()]);
  }
}

/** A form that its endpoint keeps, and writes with the texts that its parts have by then. */
export class KeptForm extends FormTexts<StreamedFormPart> {
  constructor(parts: readonly StreamedFormPart[]) {
    super();
    for (const part of parts) this.add(part.name, part.text, part);
  }

  protected write(part: StreamedFormPart, by: string): void {
    part.replacedBy = by;
  }
}
