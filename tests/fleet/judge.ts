/** Judges what clients hold, the vendor's own bill and the rows of the ledger by each other. Pure. */
import type { BillEntry } from '../../plugins/sandbox/bill.ts';
import type { Answers } from './answers.ts';

interface Attempt {
  readonly result: string;
}

export interface CallRow {
  readonly id: string;
  readonly accountId: string;
  readonly model: string;
  readonly targetModel: string | null;
  readonly settled: boolean;
  readonly estimated: boolean;
  readonly classes: Readonly<Record<string, number>> | null;
  readonly upstreamId: string | null;
  readonly priceVersion: string | null;
  readonly heldAt: number;
  readonly attempts: readonly Attempt[];
}

export interface Evidence {
  readonly answers: Pick<Answers, 'charged' | 'refused'>;
  /** Tokens of responses over WebSocket that came whole, by the id of the call or of the vendor's answer. */
  readonly sessions: ReadonlyMap<string, number>;
  /** Idempotency-Keys that were sent. */
  readonly keysSent: ReadonlySet<string>;
  readonly entries: readonly BillEntry[];
  /** The account whose calls all have an Idempotency-Key. */
  readonly keyedAccount: string;
  /** Calls that a salvaged journal lists without an end. */
  readonly salvaged: number;
  /** When prices were raised, of which models: other ones behind it than before. */
  readonly raised?: { readonly from: number; readonly to: number; readonly models: readonly string[] } | undefined;
}

type Matched = ReadonlyMap<CallRow, BillEntry>;

/** One sentence for each that was lost, charged twice or charged wrong; and what all of it is. */
export function judge(rows: readonly CallRow[], evidence: Evidence): { account: string[]; violations: string[] } {
  const { violations, matched } = match(rows, evidence.entries);
  return {
    account: accountOf(rows, matched, evidence),
    violations: [
      ...violations,
      ...lostOf(rows, matched, evidence),
      ...ofClients(rows, matched, evidence),
      ...ofSessions(rows, evidence.sessions),
      ...ofPrices(rows, evidence.raised),
    ],
  };
}

/** Each entry of the bill with its row, by the vendor's id of the answer; pictures have none. */
function match(rows: readonly CallRow[], entries: readonly BillEntry[]) {
  const violations: string[] = [];
  const byAnswer = new Map<string, CallRow>();
  for (const row of rows) {
    const answerId = row.upstreamId === null ? undefined : answerIdOf(row.upstreamId);
    if (answerId === undefined) continue;
    const other = byAnswer.get(answerId);
    if (other !== undefined) violations.push(`the answer ${answerId} was charged twice, as ${other.id} and ${row.id}`);
    byAnswer.set(answerId, row);
  }
  const matched = new Map<CallRow, BillEntry>();
  for (const entry of entries) {
    const row = byAnswer.get(entry.answerId);
    if (row !== undefined) matched.set(row, entry);
  }
  return { violations, matched };
}

/** Vendors write a prefix before it. */
const answerIdOf = (upstreamId: string) => upstreamId.slice(-24);

/** What the vendor billed is known to the ledger, and what was charged exactly was billed, by the same usage. */
function lostOf(rows: readonly CallRow[], matched: Matched, { entries, salvaged }: Evidence): string[] {
  const violations: string[] = [];
  const taken = new Set(matched.values());
  let unexplained = 0;
  for (const [model, ofModel] of Map.groupBy(entries, (entry) => entry.model)) {
    const open = ofModel.filter((entry) => !taken.has(entry));
    const own = rows.filter((row) => row.targetModel === model && !matched.has(row));
    const exact = own.filter(({ settled, estimated, classes }) => settled && !estimated && totalOf(classes ?? {}) > 0);
    const unknown = own.filter((row) => isGuess(row)).length;
    if (exact.length > open.length)
      violations.push(
        `${exact.length - open.length} calls of ${model} were charged exactly and never billed, ${exact[0]!.id} is one`,
      );
    unexplained += Math.max(0, open.length - exact.length - unknown);
  }
  if (unexplained > salvaged)
    violations.push(`${unexplained} requests that the vendor billed are in no row, ${salvaged} in a salvaged journal`);
  for (const [row, entry] of matched) {
    if (row.estimated || !row.settled) continue;
    const [charged, billed] = [totalOf(row.classes ?? {}), totalOf(entry.usage)];
    if (charged !== billed) violations.push(`${row.id} was charged for ${charged}, the vendor billed ${billed}`);
  }
  return violations;
}

const isGuess = ({ settled, estimated, attempts }: CallRow) =>
  settled ? estimated : attempts.some(({ result }) => result === 'unknown' || result === 'running');

/** Tokens, pictures and seconds; a charge by the request is the gateway's own. */
function totalOf({ request: _, ...usage }: Readonly<Record<string, number>>): number {
  return Object.values(usage).reduce((sum, count) => sum + count, 0);
}

function ofClients(rows: readonly CallRow[], matched: Matched, evidence: Evidence): string[] {
  const { answers, keysSent, keyedAccount } = evidence;
  const violations: string[] = [];
  const byId = new Map(rows.map((row) => [row.id, row]));
  for (const [id, kind] of answers.charged) {
    const row = byId.get(id);
    const fault = row?.settled !== true ? 'never charged' : row.estimated ? 'charged by an estimate' : undefined;
    if (fault !== undefined) violations.push(`${kind}: ${id} was answered whole and ${fault}`);
    else if (row!.upstreamId !== null && !matched.has(row!))
      violations.push(`${kind}: ${id} is on no bill of the vendor`);
  }
  for (const [id, kind] of answers.refused)
    if (byId.get(id)?.settled === true && !answers.charged.has(id))
      violations.push(`${kind}: ${id} was refused and charged`);
  const keyed = rows.filter(({ accountId, settled }) => accountId === keyedAccount && settled).length;
  if (keyed > keysSent.size) violations.push(`${keyed} charges for ${keysSent.size} Idempotency-Keys`);
  return violations;
}

function ofSessions(rows: readonly CallRow[], sessions: Evidence['sessions']): string[] {
  const byId = new Map(rows.flatMap((row) => [[row.id, row] as const, [row.upstreamId ?? row.id, row] as const]));
  return [...sessions].flatMap(([id, tokens]) => {
    const row = byId.get(id);
    const charged = row?.settled === true && !row.estimated ? totalOf(row.classes ?? {}) : undefined;
    return charged === tokens
      ? []
      : [`the response ${id} has ${tokens} tokens, exactly charged were ${charged ?? 'none'}`];
  });
}

/** Whatever was held before is charged by the former prices, whatever behind it by the new ones. */
function ofPrices(rows: readonly CallRow[], raised: Evidence['raised']): string[] {
  if (raised === undefined) return [];
  return raised.models.flatMap((model) => {
    const own = rows.filter((row) => row.model === model && row.settled);
    const versions = (isIn: (heldAt: number) => boolean) =>
      new Set(own.filter(({ heldAt }) => isIn(heldAt)).map(({ priceVersion }) => priceVersion));
    const [before, behind] = [versions((at) => at < raised.from), versions((at) => at > raised.to)];
    const isRight = before.size === 1 && behind.size === 1 && before.isDisjointFrom(behind);
    return isRight ? [] : [`${model} has the prices ${[...before]} before they were raised and ${[...behind]} behind`];
  });
}

function accountOf(
  rows: readonly CallRow[],
  matched: Matched,
  { answers, entries, keysSent, salvaged, sessions }: Evidence,
): string[] {
  const settled = rows.filter((row) => row.settled);
  const guessed = settled.filter(({ estimated }) => estimated).length;
  const unknown = rows.filter((row) => !row.settled && isGuess(row)).length;
  return [
    `clients hold ${answers.charged.size} whole answers that cost money, and were refused ${answers.refused.size} calls; they sent ${keysSent.size} Idempotency-Keys, and hold ${sessions.size} whole responses over WebSocket`,
    `the vendor billed ${entries.length} requests, ${matched.size} of which are in the ledger by the vendor's own id`,
    `the ledger has ${settled.length} charges, ${guessed} of them by estimate, and ${unknown} calls of unknown outcome that no client pays; a salvaged journal had ${salvaged} calls without an end`,
  ];
}
