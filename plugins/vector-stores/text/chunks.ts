/** A text in overlapping chunks of at most so many tokens, cut where paragraphs, lines, sentences or words end. Pure. */

export interface Chunking {
  readonly maxTokens: number;
  readonly overlapTokens: number;
}

export interface Chunk {
  readonly number: number;
  readonly text: string;
  /** Its first so many characters end the chunk before it. */
  readonly overlap: number;
}

/** A token of a text has mostly more, so that a chunk never has more tokens than it may: as answers without a usage are charged. */
const bytesPerToken = 3;

export const tokensOf = (text: string): number => Math.ceil(Buffer.byteLength(text) / bytesPerToken);

export function* chunksOf(text: string, { maxTokens, overlapTokens }: Chunking): Generator<Chunk> {
  const most = maxTokens * bytesPerToken;
  let [start, before, number] = [0, 0, 0];
  while (before < text.length) {
    const end = endOf(text, start, before, most);
    const piece = text.slice(start, end);
    if (piece.trim() !== '') yield { number: number++, text: piece, overlap: Math.max(0, before - start) };
    start = end >= text.length ? end : beginOf(text, start, end, overlapTokens * bytesPerToken);
    before = end;
  }
}

/** Where the chunk ends that begins at `start`: behind `before`, which ended the one before it. */
function endOf(text: string, start: number, before: number, most: number): number {
  const hard = Math.max(reach(text, start, most), Math.min(before + 2, text.length));
  if (hard >= text.length) return text.length;
  const least = Math.max(before, start + Math.floor((hard - start) / 2));
  for (const word of ['\n\n', '\n', '. ', ' ']) {
    const found = text.lastIndexOf(word, hard - word.length);
    if (found + word.length > least) return found + word.length;
  }
  return hard;
}

/** Where the next chunk begins: so many bytes before `end`, behind a word. */
function beginOf(text: string, start: number, end: number, bytes: number): number {
  if (bytes === 0) return end;
  let [at, left] = [end, bytes];
  while (at > start + 1) {
    const isLow = isLowSurrogate(text, at - 1);
    left -= isLow ? 4 : width(text.charCodeAt(at - 1));
    if (left < 0) break;
    at -= isLow ? 2 : 1;
  }
  const space = text.indexOf(' ', at);
  return space === -1 || space + 1 >= end ? at : space + 1;
}

/** The end of so many bytes from `start` on, never between the halves of a character. */
function reach(text: string, start: number, bytes: number): number {
  let [at, left] = [start, bytes];
  while (at < text.length) {
    const isPair = isLowSurrogate(text, at + 1);
    left -= isPair ? 4 : width(text.charCodeAt(at));
    if (left < 0) break;
    at += isPair ? 2 : 1;
  }
  return Math.min(at, text.length);
}

const isLowSurrogate = (text: string, at: number): boolean => (text.charCodeAt(at) & 0xfc00) === 0xdc00;

/** Bytes in UTF-8. */
const width = (code: number): number => (code < 0x80 ? 1 : code < 0x800 ? 2 : 3);
