/** One call under checks: what they say about its texts, what is noted of it, and what stands for masked texts. */
import { createHash } from 'node:crypto';
import type { Host, Log } from '../../core/contract/contract.ts';
import type { JsonObject } from '../../core/json/json.ts';
import type { CheckVerdict, FoundPlace, JudgedText, TextsToJudge } from '../common/guardrails/checks.ts';
import type { Place } from './config.ts';
import { ask, type OpenCheck, type Outcome } from './open-checks.ts';
import { type Change, countOf, inOrder, isPlace, type Piece } from './pieces.ts';
import { Placeholders } from './placeholders.ts';
import { Refusal, unchecked } from './refusal.ts';
import { type Said, Verdicts } from './verdicts.ts';

export interface CallTools {
  readonly clock: Host['clock'];
  readonly log: Pick<Log, 'warn'>;
  /** A check is broken. */
  broken(check: string): void;
  /** A digest of a finding, by the gateway's own key. */
  digest(text: string): string;
  said(verdict: CheckVerdict): void;
}

/** What a call is, beside its texts. */
export interface CallFacts {
  readonly operation: string;
  readonly schema?: JsonObject | undefined;
  readonly ask?: TextsToJudge['ask'];
  /** The number of its first placeholder, where earlier turns are added to its prompt. */
  readonly continuesAt?: number | undefined;
  /** What stands for texts of the session that it is a part of; absent: it has its own. */
  readonly placeholders?: Placeholders;
  /** No answer waits for verdicts: a message of a session, or the order of a line that a vendor's batch makes. */
  readonly hasNoAnswer?: boolean;
}

/** A place that is to be masked. */
export interface Masked extends FoundPlace {
  readonly check: OpenCheck;
}

type Stage = TextsToJudge['stage'];

/** The part of a text that is decided now. */
export interface Window {
  /** What lies before has been decided. */
  readonly from: number;
  /** What begins from here on is decided later; lowered to what may go on behind the end of the text. */
  until: number;
  /** More of the text may come. */
  readonly isOpen: boolean;
}

interface Judged {
  readonly texts: readonly JudgedText[];
  readonly unread?: number;
  /** Absent: all of them are decided. */
  readonly window?: Window;
}

/** A finding that goes on at the end of what has come is waited for, up to here. */
const mostGrowth = 4_096;

export class GuardedCall {
  readonly checks: readonly OpenCheck[];
  readonly verdicts = new Verdicts();
  readonly placeholders: Placeholders;
  /** Earlier turns are added to its prompt, which its request does not show. */
  readonly continues: boolean;
  /** The vendor's id of the answer. */
  answerId: string | undefined;
  /** Verdicts about the prompt that the answer waits for. */
  readonly beside: Promise<void>[] = [];
  readonly #facts: CallFacts;
  #waiting = 0;
  readonly #tools: CallTools;

  constructor(checks: readonly OpenCheck[], facts: CallFacts, tools: CallTools) {
    this.checks = checks;
    this.#facts = facts;
    this.#tools = tools;
    this.continues = facts.continuesAt !== undefined;
    this.placeholders = facts.placeholders ?? new Placeholders(facts.continuesAt ?? 1);
  }

  /** The call goes on while a check of its prompt is asked. Rejects as the check does. */
  runBeside(verdict: Promise<void>): void {
    this.#waiting++;
    verdict.catch(() => {}).finally(() => this.#waiting--);
    this.beside.push(verdict);
  }

  /** A digest of all that decides on its answer beside the request; undefined: the answer is for this call alone. */
  get policiesDigest(): string | undefined {
    const isOpen = this.verdicts.all.some(({ said }) => said === 'refused' || said === 'broken');
    if (isOpen || this.#waiting > 0) return undefined;
    const checks = this.checks.map(({ digest }) => digest);
    return createHash('sha256')
      .update(JSON.stringify([checks, [...this.placeholders.restored]]))
      .digest('hex');
  }

  /** Whether the call may go on while this check reads its prompt: its answer waits for the verdict. */
  mayRunBeside({ settings }: OpenCheck): boolean {
    return settings.beside && settings.do !== 'mask' && this.#facts.hasNoAnswer !== true;
  }

  at(...places: readonly Place[]): readonly OpenCheck[] {
    return this.checks.filter(({ settings }) => settings.on.some((place) => places.includes(place)));
  }

  /** What one check has found of which something is to be masked. Throws a refusal. A promise only where the check waits. */
  judge(check: OpenCheck, stage: Stage, judged: Judged): Masked[] | Promise<Masked[]> {
    const { texts, unread = 0 } = judged;
    if (texts.length === 0 && unread === 0) return [];
    const { operation, schema, ask: request } = this.#facts;
    const given = { stage, operation, texts, unread, schema, ask: request };
    const outcome = ask(check, given, this.#tools.clock);
    if (outcome instanceof Promise) return outcome.then((heard) => this.#take(check, stage, judged, heard));
    return this.#take(check, stage, judged, outcome);
  }

  /** Writes what checks have found into a piece of the request or the answer. `isPrompt`: the answer may have it put back. */
  mask(piece: Piece, places: readonly Masked[], isPrompt = false): void {
    if (places.length === 0) return;
    const byText = Map.groupBy(places, ({ text }) => text);
    const changes = new Map<number, readonly Change[]>();
    for (const [index, list] of byText) {
      const { text } = piece.texts[index]!;
      changes.set(
        index,
        inOrder(list).map((place) => ({ start: place.start, end: place.end, by: this.standIn(place, text, isPrompt) })),
      );
    }
    piece.write(changes);
  }

  standIn({ check, kind, start, end }: Masked, text: string, isPrompt = false): string {
    return this.placeholders.of(kind, text.slice(start, end), isPrompt && check.settings.restore);
  }

  #take(check: OpenCheck, stage: Stage, { texts, window }: Judged, outcome: Outcome): Masked[] {
    if ('broken' in outcome) return this.#broken(check, stage, outcome);
    const { isHit, found = [], ms } = outcome;
    if (!isHit && found.length === 0) return this.#said(check, stage, 'passed', { ms });
    const known = found.filter((place) => isPlace(place, texts));
    const places = window === undefined ? known : decidedNow(known, window, texts[0]!.text.length);
    if (!isHit || (known.length > 0 && places.length === 0)) return this.#said(check, stage, 'passed', { ms });
    const all = places.length > 0 ? places : texts.map(wholeText).filter((place) => place.end > 0);
    const noted = { ms, findings: Math.max(1, countOf(places)), digest: this.#digestOf(texts, places) };
    const { do: action } = check.settings;
    if (action === 'log') return this.#said(check, stage, 'logged', noted);
    if (action === 'mask' && all.length > 0) {
      this.#said(check, stage, 'masked', noted);
      return all.map((place) => ({ ...place, check }));
    }
    this.#said(check, stage, 'refused', noted);
    throw new Refusal(check, stage, this.verdicts.header);
  }

  #broken(check: OpenCheck, stage: Stage, { broken, ms }: { readonly broken: unknown; readonly ms: number }): Masked[] {
    const { name, settings } = check;
    this.#said(check, stage, 'broken', { ms });
    this.#tools.broken(name);
    if (settings.broken !== 'allow') this.#tools.log.warn({ error: broken, check: name }, 'a check could not judge');
    if (settings.broken === 'refuse') throw unchecked();
    return [];
  }

  #said(
    { name: check }: OpenCheck,
    stage: Stage,
    said: Said,
    { ms, findings = 0, digest = '' }: { readonly ms: number; readonly findings?: number; readonly digest?: string },
  ): Masked[] {
    this.verdicts.add({ check, stage, said, findings, ms, digest });
    this.#tools.said({ check, stage, verdict: said, ms });
    return [];
  }

  #digestOf(texts: readonly JudgedText[], [first]: readonly FoundPlace[]): string {
    return first === undefined ? '' : this.#tools.digest(texts[first.text]!.text.slice(first.start, first.end));
  }
}

/** The others were decided before, or are found again when more has come. */
function decidedNow(places: readonly FoundPlace[], window: Window, length: number): readonly FoundPlace[] {
  const ahead = places.filter(({ end }) => end > window.from);
  if (!window.isOpen) return ahead;
  const isGrowing = ({ start, end }: FoundPlace) =>
    end === length && start >= window.from && length - start < mostGrowth;
  for (const place of ahead) if (isGrowing(place)) window.until = Math.min(window.until, place.start);
  return ahead.filter((place) => place.start < window.until && !isGrowing(place));
}

function wholeText({ text }: JudgedText, index: number): FoundPlace {
  return { text: index, start: 0, end: text.length, kind: 'MASKED' };
}
