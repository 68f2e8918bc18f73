/** The types of checks that judge here, without a service: patterns, words, limits. */
import { setImmediate as nextTurn } from 'node:timers/promises';
import { count, listOf, z } from '../../../core/contract/schema.ts';
import type { FoundPlace, GuardrailCheckType, Judgement, TextsToJudge } from '../../common/guardrails/checks.ts';
import { asType } from '../services/service.ts';
import { folded } from './folded.ts';
import { isRegular, type Match, mostAtOnce, Native, Regular } from './regular.ts';
import { type KnownPattern, known, knownPatterns, plain } from './validated.ts';

const patternNames = Object.keys(knownPatterns) as [string, ...string[]];
const kindName = z.string().regex(/^[A-Za-z][A-Za-z_]{0,19}$/, 'must be a name of letters and _');

const patternsConfig = z.strictObject({
  find: z
    .array(z.enum(patternNames))
    .default([])
    .describe(
      'Known patterns: email, card (with its check digit), iban (with its checksum), phone, ip. Name those that your clients should not send.',
    ),
  own: z
    .record(kindName, z.string().min(1).max(1_000).refine(isRegular, 'is no regular expression of RE2'))
    .default({})
    .describe(
      'Your own regular expressions in RE2’s syntax, by the name that their placeholders have. Add one for numbers of your own company.',
    ),
  ignore_case: z
    .boolean()
    .default(true)
    .describe('Capital and small letters are the same to your own expressions. Turn it off where the case matters.'),
});

const clean: Judgement = { isHit: false, found: [] };

interface Seeker {
  readonly kind: string;
  readonly regular: Pick<Regular, 'matches'>;
  readonly hint: RegExp | undefined;
  readonly proven: KnownPattern['proven'];
}

const patterns: GuardrailCheckType<z.output<typeof patternsConfig>> = {
  name: 'patterns',
  config: patternsConfig,
  open({ find, own, ignore_case: ignoresCase }) {
    if (find.length === 0 && Object.keys(own).length === 0) throw new Error('needs `find` or `own`');
    const seekers: Seeker[] = [
      ...find.map((one): Seeker => {
        const { kind, pattern, hint, proven } = knownPatterns[one]!;
        const regular = typeof pattern === 'string' ? new Regular(pattern, false) : new Native(pattern);
        return { kind, regular, hint, proven };
      }),
      ...Object.entries(own).map(
        ([kind, pattern]): Seeker => ({
          kind: kind.toUpperCase(),
          regular: new Regular(pattern, ignoresCase),
          hint: undefined,
          proven: (match) => match,
        }),
      ),
    ];
    const areKnown = Object.keys(own).length === 0;
    const slow = seekers.filter(({ regular }) => regular instanceof Regular).length;
    return {
      waitsForTurns: true,
      judge({ texts }) {
        if (areKnown && texts.every(({ text }) => plain.test(text))) return clean;
        const read = texts.reduce((sum, { text }) => sum + text.length, 0) * slow;
        if (read > mostAtOnce) return judgedInTurns(seekers, texts);
        return judged(texts, (text, index) => foundBy(seekers, text, index));
      },
    };
  },
};

/** Long texts: others have a turn of the event loop after each part. */
async function judgedInTurns(seekers: readonly Seeker[], texts: TextsToJudge['texts']): Promise<Judgement> {
  const all: FoundPlace[] = [];
  for (const [index, { text }] of texts.entries()) {
    const seen = folded(text);
    const likely = known.test(seen.text) ? seekers : seekers.filter(({ hint }) => hint === undefined);
    let found: readonly FoundPlace[] = [];
    for (const seeker of likely)
      if (seeker.hint?.test(seen.text) !== false) found = besides(found, await placesInTurns(seeker, seen.text, index));
    for (const place of found) all.push({ ...place, ...seen.place(place.start, place.end) });
  }
  return { isHit: all.length > 0, found: all };
}

async function placesInTurns(seeker: Seeker, text: string, index: number): Promise<FoundPlace[]> {
  const { regular } = seeker;
  const places: FoundPlace[] = [];
  for (const part of regular instanceof Regular ? regular.parts(text) : [regular.matches(text)]) {
    for (const place of placesIn(seeker, part, text, index)) places.push(place);
    await nextTurn();
  }
  return places;
}

/** The first of the list that finds a place has it. In their order. */
function foundBy(seekers: readonly Seeker[], text: string, index: number): readonly FoundPlace[] {
  let found: readonly FoundPlace[] = [];
  const mayBeKnown = known.test(text);
  for (const seeker of seekers) {
    if (seeker.hint !== undefined && !(mayBeKnown && seeker.hint.test(text))) continue;
    const own = placesOf(seeker, text, index);
    if (own.length > 0) found = found.length === 0 ? own : besides(found, own);
  }
  return found;
}

function placesOf(seeker: Seeker, text: string, index: number): FoundPlace[] {
  return placesIn(seeker, seeker.regular.matches(text), text, index);
}

function placesIn({ kind, proven }: Seeker, matches: Iterable<Match>, text: string, index: number): FoundPlace[] {
  const places: FoundPlace[] = [];
  for (const { text: match, start } of matches) {
    const part = proven(match);
    if (part === undefined || isInside(text, start, start + part.length)) continue;
    places.push({ text: index, start, end: start + part.length, kind });
  }
  return places;
}

/** Both lists are in order; of the second one those that touch none of the first. */
function besides(first: readonly FoundPlace[], second: readonly FoundPlace[]): readonly FoundPlace[] {
  let next = 0;
  const free = second.filter(({ start, end }) => {
    while (next < first.length && first[next]!.end <= start) next++;
    return next === first.length || first[next]!.start >= end;
  });
  return [...first, ...free].toSorted((one, other) => one.start - other.start);
}

/** A longer number that has such digits in it is another thing. */
function isInside(text: string, start: number, end: number): boolean {
  const isDigit = (at: number) => /\d/.test(text[at] ?? '');
  return (isDigit(start) && isDigit(start - 1)) || (isDigit(end - 1) && isDigit(end));
}

type Find = (text: string, index: number) => readonly FoundPlace[];

/** Finds in texts as they look, and names the places as they were written. */
function judged(texts: TextsToJudge['texts'], find: Find, lookalikes = false): Judgement {
  const found = texts.flatMap(({ text }, index) => {
    const seen = folded(text, lookalikes);
    return find(seen.text, index).map((place) => ({ ...place, ...seen.place(place.start, place.end) }));
  });
  return { isHit: found.length > 0, found };
}

const wordsConfig = z.strictObject({
  list: listOf(z.string()).describe(
    'Words or phrases, in any case: a list, or the path of a text file beside the gateway file with one in each line. Change it as your rules change.',
  ),
  inside: z
    .boolean()
    .default(false)
    .describe('They are also found inside longer words. Set it for languages that put no spaces between words.'),
});

const words: GuardrailCheckType<z.output<typeof wordsConfig>> = {
  name: 'words',
  config: wordsConfig,
  async open({ list, inside }, { read }) {
    const lines = (await Promise.all(list.map((one) => (isPath(one) ? read(one) : one)))).join('\n').split(/\r?\n/);
    const phrases = [
      ...new Set(lines.map((line) => line.trim()).filter((line) => line !== '' && !line.startsWith('#'))),
    ];
    if (phrases.length === 0) throw new Error('`list` has no words');
    const regular = new Native(new RegExp(anyOf(phrases.map((phrase) => signsOf(folded(phrase, true).text))), 'giu'));
    const find = (text: string, index: number) =>
      [...regular.matches(text)]
        .filter(({ start, end }) => inside || !isPartOfWord(text, start, end))
        .map(({ start, end }) => ({ text: index, start, end, kind: 'WORD' }));
    return { judge: ({ texts }) => judged(texts, find, true) };
  },
};

const isPath = (text: string) => /^(?:\.{1,2}\/|\/)/.test(text);

/** The signs of a phrase as expressions. */
function signsOf(phrase: string): readonly string[] {
  return Array.from(phrase.replace(/\s+/g, ' '), (sign) => {
    const small = sign.toLowerCase();
    if (sign === ' ') return String.raw`\s+`;
    return (small.length === sign.length ? small : sign).replace(/[\\^$.*+?()[\]{}|]/, String.raw`\$&`);
  });
}

/** An expression of all phrases, longer ones first, in which beginnings that are the same stand once: a list of thousands is as fast as a short one. */
function anyOf(phrases: readonly (readonly string[])[]): string {
  const going = phrases.filter(({ length }) => length > 0);
  if (going.length === 0) return '';
  const byFirst = Map.groupBy(going, ([first]) => first!);
  const ways = [...byFirst].map(([first, list]) => first + anyOf(list.map((phrase) => phrase.slice(1))));
  const isEnd = going.length < phrases.length;
  return ways.length === 1 && !isEnd ? ways[0]! : `(?:${ways.join('|')})${isEnd ? '?' : ''}`;
}

const letter = /[\p{L}\p{N}_]/u;
/** Letters of writing without spaces between words. */
const unspaced = /[\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Thai}]/u;

function isPartOfWord(text: string, start: number, end: number): boolean {
  const joined = (one = '', other = '') =>
    letter.test(one) && letter.test(other) && !unspaced.test(one) && !unspaced.test(other);
  return joined(text[start - 1], text[start]) || joined(text[end - 1], text[end]);
}

const limitsConfig = z.strictObject({
  prompt_characters: count().optional().describe('Most characters of all texts of a request. Absent: any number.'),
  answer_characters: count().optional().describe('Most characters of one text of an answer. Absent: any number.'),
  images: count()
    .optional()
    .describe('Most images, files and other contents of a request that are no texts. Absent: any number.'),
});

const limits: GuardrailCheckType<z.output<typeof limitsConfig>> = {
  name: 'limits',
  config: limitsConfig,
  open({ prompt_characters: ofPrompt = Infinity, answer_characters: ofAnswer = Infinity, images = Infinity }) {
    return {
      wantsWhole: true,
      judge({ stage, texts, unread }) {
        const characters = texts.reduce((sum, { text }) => sum + text.length, 0);
        return { isHit: stage === 'prompt' ? characters > ofPrompt || unread > images : characters > ofAnswer };
      },
    };
  },
};

export const localChecks: readonly GuardrailCheckType[] = [asType(patterns), asType(words), asType(limits)];
