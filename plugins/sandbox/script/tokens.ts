/**
 * The sandbox's unit: one token is four characters (UTF-16 units), a remainder counts as one; an image, audio or file is 258.
 * All counting, cutting and billing uses these functions, so that protocols cannot disagree. Pure.
 */

export const charactersPerToken = 4;

/** Tokens of one image, audio or file, whatever its size. */
export const tokensPerMedium = 258;

/** Longest answer that a directive may request, in tokens. */
export const maxAnswerTokens = 1_000_000;

export function tokensOf(characters: number): number {
  return Math.ceil(characters / charactersPerToken);
}

/** The first `characters` of a text; one less where the cut would fall inside a surrogate pair. */
export function cutText(text: string, characters: number): string {
  if (text.length <= characters) return text;
  const last = text.charCodeAt(characters - 1);
  const splitsPair = last >= 0xd800 && last <= 0xdbff;
  return text.slice(0, splitsPair ? characters - 1 : characters);
}

const filler = 'The sandbox goes on in plain words until the answer is as long as it should be. ';

/** A text of exactly `tokens` tokens that begins with `opening`. */
export function textOfLength(opening: string, tokens: number): string {
  const characters = tokens * charactersPerToken;
  if (opening.length >= characters) return cutText(opening, characters).padEnd(characters, '.');
  const missing = characters - opening.length - 1;
  return `${opening} ${filler.repeat(Math.ceil(missing / filler.length)).slice(0, missing)}`;
}

/** The text split into pieces: by words, or `count` pieces of nearly the same length. */
export function piecesOf(text: string, count: number | undefined): string[] {
  if (count === undefined) return text.match(/\s*\S+\s*$|\s*\S+/g) ?? (text === '' ? [] : [text]);
  const pieces: string[] = [];
  let from = 0;
  for (let index = 1; index <= count && from < text.length; index++) {
    const piece = cutText(text.slice(from), Math.max(1, Math.round((index * text.length) / count) - from));
    if (piece === '') continue;
    pieces.push(piece);
    from += piece.length;
  }
  if (from < text.length) pieces.push(text.slice(from));
  return pieces;
}
