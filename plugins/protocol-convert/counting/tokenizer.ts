/** Tokens of texts by a public vocabulary: loaded when it is first needed, in pieces that leave the event loop to others. */
import { setImmediate } from 'node:timers/promises';

type CountTokens = (text: string, options: { disallowedSpecial: Set<string> }) => number;

/** Texts beyond this many characters together are sized, not tokenized: 1 MB takes about 50 ms of computing. */
const mostCharacters = 2 * 2 ** 20;
/** What a token stands for, about, where nothing is tokenized; a little less than measured, so that the guess is not too low. */
const bytesPerToken = 3;
/**
 * The tokenizer's time grows with the square of a run without spaces, such as base64 or Chinese, so no piece is longer than
 * this. Cutting a word costs a token at most.
 */
const pieceCharacters = 1_000;
/** How far back from the end of a piece a space is looked for. */
const lookBack = 100;
/** Characters after which others get their turn. */
const turnCharacters = 8_000;

/** Words of the vocabulary's own control language are text like any other. */
const plain = { disallowedSpecial: new Set<string>() };

let loading: Promise<CountTokens> | undefined;

/** Tokens of these texts, each counted by itself. */
export async function countText(texts: readonly string[]): Promise<number> {
  let characters = 0;
  for (const text of texts) characters += text.length;
  if (characters === 0) return 0;
  if (characters > mostCharacters) return sized(texts);
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

/** Behind a space where there is one near, else where the length is used up. */
function pieceEnd(text: string, start: number): number {
  const end = start + pieceCharacters;
  if (end >= text.length) return text.length;
  for (let at = end; at > end - lookBack; at--) {
    const code = text.charCodeAt(at);
    // A space belongs to the word behind it.
    if (code === 0x20 || code === 0x0a) return at;
  }
  return end;
}

function sized(texts: readonly string[]): number {
  let bytes = 0;
  for (const text of texts) bytes += Buffer.byteLength(text);
  return Math.ceil(bytes / bytesPerToken);
}
