/** Seals the statements of months that have ended, account by account: a bounded part, which the next round goes on with. */
import { zoneOfAccount, zonesInUse } from '../budgets/zones.ts';
import { type Month, monthAfter, monthAt, monthOf } from '../grants/months.ts';
import { dueMonths } from './credit.ts';
import { StatementLines } from './format.ts';
import {
  accountAfter,
  type Bounds,
  claim,
  headOf,
  lastSeqOf,
  movedBefore,
  movementsOf,
  moveOn,
  openSeqOf,
  type Place,
  sealedOf,
  type Turn,
} from './rows.ts';

/** After the end of a month: most of what ended in it is in the database by then. What comes later is a correction in the next statement. */
const settleMs = 3_600_000;
const mostAccounts = 200;
/** Longer than a round takes: another process goes on behind one that has died. */
const claimMs = 600_000;

export interface Round {
  readonly place: Place;
  /** For accounts that have none of their own. */
  readonly zone: string;
  /** How long behind the end of a month what was used of a credit line is to be paid. */
  readonly payWithinMs: number;
  /** Id of this process. */
  readonly owner: string;
  /** Wall-clock milliseconds. */
  readonly now: number;
}

export interface Sealing {
  /** How many accounts were gone through. */
  readonly accounts: number;
  /** Before this time there is nothing to do. */
  readonly dueAt: number;
}

export async function sealRound(round: Round): Promise<Sealing> {
  const { place, zone, owner, now } = round;
  let turn = await claim(place, owner, claimMs, monthAt(now, zone));
  const zones = await zonesInUse(place.orm, place.schema);
  let accounts = 0;
  while (turn !== undefined && accounts < mostAccounts) {
    const dueAt = endOf(turn.month, [zone, ...zones]) + settleMs;
    if (dueAt > now) return { accounts, dueAt };
    turn = await nextTurn(round, turn);
    accounts += 1;
  }
  // Another process that is at it may die.
  return { accounts, dueAt: turn === undefined ? now + claimMs : now };
}

/** When the month has ended in all of these zones. */
const endOf = (month: string, zones: readonly string[]): number =>
  Math.max(...zones.map((zone) => monthOf(month, zone).until));

/** Undefined: another process has gone on. */
async function nextTurn({ place, owner, zone: usual, payWithinMs }: Round, turn: Turn): Promise<Turn | undefined> {
  const accountId = await accountAfter(place, turn.accountId);
  const next =
    accountId === undefined ? { month: monthAfter(turn.month), accountId: '' } : { month: turn.month, accountId };
  if (accountId === undefined) return (await moveOn(place, owner, [turn, next], undefined)) ? next : undefined;
  const zone = (await zoneOfAccount(place.orm, place.schema, accountId)) ?? usual;
  const sealed = await statementOf(place, accountId, { month: monthOf(turn.month, zone), zone, payWithinMs });
  return (await moveOn(place, owner, [turn, next], sealed)) ? next : undefined;
}

interface Wanted extends Pick<Round, 'zone' | 'payWithinMs'> {
  readonly month: Month;
}

/**
 * Undefined: nothing has moved. Its rows are read before the transaction that writes it: up to the last one that there is now, which they
 * all have come before, they never change.
 */
async function statementOf(place: Place, accountId: string, of: Wanted) {
  const { name, from, until } = of.month;
  const before = await sealedOf(place, accountId);
  const seenSeq = await lastSeqOf(place, accountId);
  // After a change of the zone a month may have been sealed already.
  if (seenSeq === undefined || (before !== undefined && (before.month >= name || before.until >= until)))
    return undefined;
  const bounds: Bounds = { accountId, month: name, zone: of.zone, from, until, seenSeq, before };
  const opening = before?.closing ?? (await movedBefore(place, bounds));
  const lines = new StatementLines(headOf(bounds, opening));
  for await (const row of movementsOf(place, bounds)) lines.row(row);
  if (lines.rows === 0) return undefined;
  const openSeq = await openSeqOf(place, bounds);
  const summary = lines.summary(await dueMonths(place, bounds, { openSeq, payWithinMs: of.payWithinMs }));
  lines.line(summary);
  const number = (before?.number ?? 0) + 1;
  const { closing, digest } = lines;
  return {
    ...{ accountId, number, month: name, zone: of.zone, from, until, seenSeq, openSeq },
    ...{ opening, closing: String(closing), summary, digest, previous: before?.digest ?? null },
  };
}
