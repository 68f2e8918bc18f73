/**
 * Token counts of texts by a public vocabulary: loaded on first use, computed in pieces that do not block the event
 * loop.
 */
import { setImmediate } from 'node:timers/promises';

type CountTokens = (text: string, options: { disallowedSpecial: Set<string> }) => number;

/** Longer texts are estimated by size, not tokenized: 1 MB takes about 50 ms of computing. */
const mostCharacters = 2 * 2 ** 20;
/**
 * Approximate bytes of a token in the estimate; slightly below the measured value, so that the estimate is not too
 * low.
 */
const bytesPerToken = 3;
/**
 * The tokenizer's time grows with the square of a run without spaces, such as base64 or Chinese, so pieces are at most
 * this long. Cutting a word costs at most one token.
 */
const pieceCharacters = 1_000;
/** How far before the end of a piece to search for a space. */
const lookBack = 100;
/** Characters after which the event loop continues. */
const turnCharacters = 8_000;

/** Control tokens of the vocabulary count as plain text. */
const plain = { disallowedSpecial: new Set<string>() };

let loading: Promise<CountTokens> | undefined;

/** Tokens of these texts, each counted separately. */
export async function countText(texts: readonly string[]): Promise<number> {
  let characters = 0;
  for (const text of texts) characters += text.length;
  if (characters === 0) return 0;
  if (characters > mostCharacters) return estimateBySize(texts);
  loading ??= import('gpt-tokenizer/encoding/o200k_base').then(({ countTokens }) => countTokens);
  const countTokens = await loading;
  let tokens = 0;
  let sinceTurn = 0;
  for (const text of texts) {
    for (let start = 0; start < text.length; ) {
      const end = pieceEnd(text, start);
      tokens += countTokens(text.slice(start, end), plain);
      sinceTurn += end - start;
      start = end;
      if (sinceTurn < turnCharacters) continue;
      sinceTurn = 0;
      await setImmediate();
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

function estimateBySize(texts: readonly string[]): number {
  let bytes = 0;
  for (const text of texts) bytes += Buffer.byteLength(text);
  return Math.ceil(bytes / bytesPerToken);
}
