/** The conversation of a live session, counted in tokens and cached between answers, and the next answer. */
import type { Usage } from '../../common/domain/usage.ts';
import { pcmTone } from '../endpoints/tones.ts';
import { type Directives, parseDirectives } from '../script/directives.ts';
import { piecesOf, textOfLength, tokensOf, tokensPerMedium } from '../script/tokens.ts';

/** 24 kHz, 16 bits, one channel; input has a token for 100 ms, output one for 50 ms. */
const bytesPerSecond = 48_000;
const heardPerSecond = 10;
const spokenPerSecond = 20;
const charactersPerSecond = 15;
const cacheStep = 64;

const heardClasses = ['input', 'input_audio', 'input_image'] as const;
const cachedClasses = {
  input: 'cache_read',
  input_audio: 'cache_read_audio',
  input_image: 'cache_read_image',
} as const;
type Prompt = Record<(typeof heardClasses)[number], number>;

export interface Piece {
  readonly text: string;
  /** The part of it that is spoken. */
  readonly audio: Buffer | undefined;
}

export interface Answer {
  readonly directives: Directives;
  readonly pieces: readonly Piece[];
  /** Usage of the prompt, by class. */
  readonly prompt: Usage;
}

export class Talk {
  readonly #model: string;
  #prompt: Prompt = { input: 0, input_audio: 0, input_image: 0 };
  #cached: Prompt = { input: 0, input_audio: 0, input_image: 0 };
  #said = '';

  constructor(model: string) {
    this.#model = model;
  }

  hearText(text: string): void {
    this.#prompt.input += tokensOf(text.length);
    this.#said = text;
  }

  /** Returns its duration in seconds. */
  hearAudio(bytes: number, perSecond = bytesPerSecond): number {
    const seconds = bytes / perSecond;
    this.#prompt.input_audio += Math.ceil(seconds * heardPerSecond);
    this.#said = `${Math.round(seconds * 10) / 10} seconds of sound`;
    return seconds;
  }

  hearImage(): void {
    this.#prompt.input_image += tokensPerMedium;
  }

  /** `settings`: instructions and the like, which are part of every prompt. Throws a Fault for a wrong directive. */
  answer(settings: string, speaks: boolean): Answer {
    const { text, directives } = parseDirectives(this.#said);
    const opening = `The sandbox ${this.#model} has heard: ${text}`;
    const whole = directives.tokens === undefined ? opening : textOfLength(opening, directives.tokens);
    const pieces = piecesOf(whole, directives.chunks).map((piece) => ({
      text: piece,
      audio: speaks ? pcmTone(piece.length / charactersPerSecond) : undefined,
    }));
    return { directives, pieces, prompt: this.#promptUsage(tokensOf(settings.length)) };
  }

  /** The part of the answer that was sent becomes part of the next prompt. */
  said(produced: Usage): void {
    this.#prompt.input += produced.output ?? 0;
    this.#prompt.input_audio += produced.output_audio ?? 0;
  }

  #promptUsage(settingsTokens: number): Usage {
    const usage: { [name: string]: number } = {};
    for (const name of heardClasses) {
      const all = this.#prompt[name] + (name === 'input' ? settingsTokens : 0);
      const cached = Math.floor(Math.min(this.#cached[name], all) / cacheStep) * cacheStep;
      if (name === 'input' || all > 0) usage[name] = all - cached;
      if (cached > 0) usage[cachedClasses[name]] = cached;
      this.#cached[name] = all;
    }
    return usage;
  }
}

/** Usage of these pieces, by class. */
export function producedBy(pieces: readonly Piece[]): Usage {
  const text = pieces.reduce((sum, { text: piece }) => sum + piece.length, 0);
  const audio = pieces.reduce((sum, { audio: sound }) => sum + (sound?.length ?? 0), 0);
  const spoken = Math.ceil((audio / bytesPerSecond) * spokenPerSecond);
  return spoken > 0 ? { output: tokensOf(text), output_audio: spoken } : { output: tokensOf(text) };
}

/** Duration of these bytes in seconds. */
export const secondsOf = (bytes: number): number => bytes / bytesPerSecond;
