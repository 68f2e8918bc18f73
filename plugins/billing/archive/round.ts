/**
 * Moves old calls to sealed files: a bounded part of the work, which the next round goes on with. A file is stored and read back
 * before one transaction puts it in the place of its calls, so a crash leaves at most a file that the next round writes again.
 */
import type { Contents } from './contents.ts';
import { type CallLine, endOf, type Link, mostCalls, mostCharacters, sealedOf } from './format.ts';
import { type ArchiveRows, noId, type Place } from './rows.ts';

/** Files that one round archives at most. */
const mostFiles = 10;
const mostLooks = 40;
const pageCalls = 500;
/** Longer than a round takes: another process goes on behind one that has died. */
const claimMs = 600_000;

export interface Round {
  readonly rows: ArchiveRows;
  readonly contents: Contents;
  readonly schema: string;
  /** Id of this process. */
  readonly owner: string;
  /** Wall-clock milliseconds: calls of months that end later stay. */
  readonly until: number;
}

/** Resolves with how many calls were archived. */
export async function archiveRound(round: Round): Promise<number> {
  const { rows, owner } = round;
  const begun = await rows.claim(owner, claimMs);
  if (begun === undefined) return 0;
  let [place, calls, files]: [Place, number, number] = [begun, 0, 0];
  for (let looks = 0; files < mostFiles && looks < mostLooks; ) {
    const found = await nextPlace(round, place);
    looks += found.looks;
    if (found.place !== place && !(await rows.move(owner, place, found.place))) return calls;
    place = found.place;
    if (found.isOver) return calls;
    if (!found.hasCalls) continue;
    const sealed = await sealNext(round, place as Place & { month: string });
    if (sealed === undefined) return calls;
    [place, calls, files] = [sealed.place, calls + sealed.calls, files + 1];
  }
  return calls;
}

interface Found {
  readonly place: Place;
  /** The account of the place has calls behind it. */
  readonly hasCalls: boolean;
  /** No month is left that is old enough. */
  readonly isOver: boolean;
  readonly looks: number;
}

/** The place itself while it has calls, then the next account, then the next month that has any call. */
async function nextPlace({ rows, until }: Round, place: Place): Promise<Found> {
  const { month } = place;
  const over = { place, hasCalls: false, isOver: true, looks: 1 };
  if (month === undefined) {
    const first = await rows.monthFrom(0);
    return first === undefined ? over : { ...over, place: startOfMonth(first), isOver: false };
  }
  if (endOf(month) > until) return over;
  if (place.accountId !== '' && place.afterId !== passed) {
    const [next] = await rows.read({ ...place, month }, 1);
    if (next !== undefined) return { place, hasCalls: true, isOver: false, looks: 0 };
  }
  const { last, withCalls } = await rows.accountsAfter(place.accountId, month);
  const [accountId] = withCalls;
  if (accountId !== undefined)
    return { place: { month, accountId, afterId: noId }, hasCalls: true, isOver: false, looks: 1 };
  if (last !== undefined)
    return { place: { month, accountId: last, afterId: passed }, hasCalls: false, isOver: false, looks: 1 };
  const next = await rows.monthFrom(endOf(month));
  return next === undefined ? over : { ...over, place: startOfMonth(next), isOver: false };
}

/** An account without calls in the month. */
const passed = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

const startOfMonth = (month: string): Place => ({ month, accountId: '', afterId: noId });

/** Undefined: another process has the work by now, or its calls. */
async function sealNext(
  { rows, contents, schema, owner }: Round,
  place: Place & { readonly month: string },
): Promise<{ readonly place: Place; readonly calls: number } | undefined> {
  const { month, accountId } = place;
  const lines = await readLines(rows, place);
  if (lines.length === 0) return undefined;
  const before: Link | undefined = await rows.lastOf(accountId);
  const { sealed, content } = sealedOf({ schema, accountId, month }, lines, before);
  const bytes = await contents.put(sealed.object, content);
  const read = await contents.read({ ...sealed, bytes });
  if ('fault' in read) throw new Error(`the file ${sealed.object} was stored and ${read.fault}`);
  const next = { ...place, afterId: sealed.lastId };
  const isDone = await rows.seal(owner, sealed, bytes, place, next);
  return isDone ? { place: next, calls: sealed.calls } : undefined;
}

async function readLines(rows: ArchiveRows, place: Place & { readonly month: string }): Promise<CallLine[]> {
  const lines: CallLine[] = [];
  for (let characters = 0; lines.length < mostCalls && characters < mostCharacters; ) {
    const afterId = lines.at(-1)?.id ?? place.afterId;
    const page = await rows.read({ ...place, afterId }, pageCalls);
    lines.push(...page);
    characters += page.reduce((sum, { line }) => sum + line.length, 0);
    if (page.length < pageCalls) break;
  }
  return lines;
}
