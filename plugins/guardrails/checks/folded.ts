/** Texts as they look to a reader: signs that are not seen are left out, and other forms of a letter are the letter. Pure. */

export interface Folded {
  readonly text: string;
  /** The place in the text as it was written. */
  place(start: number, end: number): { readonly start: number; readonly end: number };
}

/** `\s` would have a sign that is not seen. */
const ascii = /^[\x09-\x0d\x20-\x7e]*$/;
const unseen = /\p{Default_Ignorable_Code_Point}/gu;
/** A sign with the marks on it. */
const signs = /\P{M}\p{M}*|\p{M}+/gu;

/** Letters of other scripts that look like these. */
const alike: ReadonlyMap<string, string> = new Map(
  (
    [
      ['a', 'аɑα'],
      ['b', 'ЬВΒ'],
      ['c', 'сϲСϹ'],
      ['d', 'ԁ'],
      ['e', 'еЕΕ'],
      ['h', 'һНΗ'],
      ['i', 'іІΙι'],
      ['j', 'јЈ'],
      ['k', 'кКΚκ'],
      ['l', 'ӏ'],
      ['m', 'МΜ'],
      ['n', 'Νո'],
      ['o', 'оОοΟօ'],
      ['p', 'рРρΡ'],
      ['q', 'ԛ'],
      ['s', 'ѕЅ'],
      ['t', 'ТΤ'],
      ['u', 'υս'],
      ['v', 'νѵ'],
      ['w', 'ԝ'],
      ['x', 'хХχΧ'],
      ['y', 'уУγΥ'],
      ['z', 'Ζ'],
    ] as const
  ).flatMap(([letter, others]) => [...others].map((other) => [other, letter] as const)),
);

const plain = (text: string): Folded => ({ text, place: (start, end) => ({ start, end }) });

/** `lookalikes`: letters of other scripts count as the Latin ones that they look like. */
export function folded(text: string, lookalikes = false): Folded {
  if (ascii.test(text)) return plain(text);
  const shown = text.search(unseen) === -1 && text.normalize('NFKC') === text;
  if (shown && !lookalikes) return plain(text);
  let out = '';
  /** Where the sign begins and ends that each one of `out` comes from. */
  const [starts, ends]: [number[], number[]] = [[], []];
  for (const { 0: sign, index } of text.matchAll(signs)) {
    const seen = sign.replace(unseen, '').normalize('NFKC');
    const made = lookalikes ? Array.from(seen, (one) => alike.get(one) ?? one).join('') : seen;
    for (let at = 0; at < made.length; at++) {
      starts.push(index);
      ends.push(index + sign.length);
    }
    out += made;
  }
  return { text: out, place: (start, end) => ({ start: starts[start]!, end: ends[end - 1]! }) };
}
