/** The thread of the tokenizer: takes texts, gives their tokens. */
import { parentPort } from 'node:worker_threads';
import { countTokens } from 'gpt-tokenizer/encoding/o200k_base';
import type { Counted, ToCount } from './tokenizer.ts';

/**
 * The tokenizer's time grows with the square of a run without spaces, such as base64 or Chinese, so pieces are at most
 * this long. Cutting a word costs at most one token.
 */
const pieceCharacters = 1_000;
/** How far before the end of a piece to search for a space. */
const lookBack = 100;

/** Control tokens of the vocabulary count as plain text. */
const plain = { disallowedSpecial: new Set<string>() };

const port = parentPort!;
port.on('message', ({ call, texts }: ToCount) => port.postMessage({ call, tokens: tokensOf(texts) } satisfies Counted));

/** Tokens of these texts, each counted separately. */
function tokensOf(texts: readonly string[]): number {
  let tokens = 0;
  for (const text of texts) {
    for (let start = 0; start < text.length; ) {
      const end = pieceEnd(text, start);
      tokens += countTokens(text.slice(start, end), plain);
      start = end;
    }
  }
  return tokens;
}

/** Before a space near the end of the piece, else at the maximum length. */
function pieceEnd(text: string, start: number): number {
  const end = start + pieceCharacters;
  if (end >= text.length) return text.length;
  for (let at = end; at > end - lookBack; at--) {
    const code = text.charCodeAt(at);
    // A space belongs to the following word.
    if (code === 0x20 || code === 0x0a) return at;
  }
  return end;
}
