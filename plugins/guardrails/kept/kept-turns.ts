/** Texts of a prompt in the canonical format with their places: earlier turns that an id continues, which no request has shown. Pure. */
import type { Part, Prompt, ToolResultPart } from '../../common/canonical/prompt.ts';
import type { PromptText, PromptTexts } from '../../common/wire/prompt-rules.ts';

type Write = (by: string) => void;

export class KeptTurns implements PromptTexts {
  readonly texts: PromptText[] = [];
  readonly unread = [];
  readonly #prompt: Prompt;
  readonly #parts: Part[][];
  readonly #writes = new Map<PromptText, Write>();
  #isChanged = false;

  constructor(prompt: Prompt) {
    this.#prompt = prompt;
    this.#parts = prompt.turns.map(({ parts }) => [...parts]);
    for (const [index, { role, parts }] of prompt.turns.entries())
      for (const [number, part] of parts.entries()) this.#read(index, number, role, part);
  }

  replace(text: PromptText, by: string): void {
    const write = this.#writes.get(text);
    if (write === undefined) throw new Error('the text is none of this prompt, or was replaced before');
    const changed = { ...text, text: by };
    this.texts[this.texts.indexOf(text)] = changed;
    this.#writes.delete(text);
    this.#writes.set(changed, write);
    this.#isChanged = true;
    write(by);
  }

  /** The same object where nothing was replaced. */
  written(): Prompt {
    if (!this.#isChanged) return this.#prompt;
    return {
      ...this.#prompt,
      turns: this.#prompt.turns.map((turn, index) => ({ ...turn, parts: this.#parts[index]! })),
    };
  }

  #read(index: number, number: number, role: PromptText['role'], part: Part): void {
    const set = (changed: Part) => {
      this.#parts[index]![number] = changed;
    };
    const add = (kind: PromptText['kind'], text: string, write: Write, by = role) => {
      const read: PromptText = { role: by, kind, field: `turns[${index}].parts[${number}]`, turn: index + 1, text };
      this.texts.push(read);
      this.#writes.set(read, write);
    };
    if (part.kind === 'text') {
      const { opaqueState: _signed, logprobs: _logprobs, citations: _places, ...rest } = part;
      add('text', part.text, (text) => set({ ...rest, text }));
    } else if (part.kind === 'refusal') add('text', part.text, (text) => set({ ...part, text }));
    else if (part.kind === 'reasoning') {
      const { opaqueState: _signed, ...rest } = part;
      add('reasoning', part.text, (text) => set({ ...rest, text }));
    } else if (part.kind === 'tool-call') add('call', part.input, (input) => set({ ...part, input }), 'assistant');
    else if (part.kind === 'tool-result')
      this.#readResult(part, set, (text, write) => add('result', text, write, 'tool'));
  }

  #readResult(result: ToolResultPart, set: (changed: Part) => void, add: (text: string, write: Write) => void): void {
    const parts = [...result.parts];
    for (const [index, part] of parts.entries())
      if (part.kind === 'text')
        add(part.text, (text) => {
          parts[index] = { ...part, text };
          set({ ...result, parts });
        });
  }
}
