/** Programs that ask a person for a key (RFC 8628, and by the person's browser): one row for each, for minutes. The key is made when the program takes it, so none is kept. */
import { and, eq, gt, isNotNull, isNull, lt, type SQL } from 'drizzle-orm';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Clock, Random } from '../../../core/contract/host-tools.ts';
import type { Orm } from '../../common/domain/database.ts';
import { hashSecret, makeSecret } from '../people/secrets.ts';
import type { ConsoleTables } from '../people/tables.ts';
import type { AnsweredRequest, KeyRequests, TakenKey, Visit } from '../people.ts';

/** Long enough to sign in, too short to be guessed. */
const lastsMs = 10 * 60_000;
/** For this time a program that comes late learns why. */
const keptMs = 3_600_000;
const intervalMs = 5_000;
const longestIntervalMs = 60_000;
/** Clocks and lines of programs are not exact. */
const earlyMs = 500;
const mostWaiting = 10_000;
/** From the person's answer until the program has its key: the browser goes straight there. */
const codeMs = 60_000;

/** Consonants without Y, so that no code is a word, and none is read as another one: 20 to the power of 8 codes. */
const letters = 'BCDFGHJKLMNPQRSTVWXZ';
const codeLength = 8;

function makeCode(random: Random): string {
  let code = '';
  while (code.length < codeLength)
    // Bytes above a multiple of 20 would make the first letters more frequent.
    for (const byte of random.bytes(codeLength)) if (byte < 240) code += letters[byte % letters.length];
  return `${code.slice(0, 4)}-${code.slice(4, codeLength)}`;
}

/** However it is typed. */
const hashOf = (code: string) => hashSecret(code.toUpperCase().replace(/[^A-Z]/g, ''));

interface KeyRequestParts {
  readonly clock: Clock;
  readonly random: Random;
}

export function openKeyRequests(orm: Orm, { keyRequests: rows }: ConsoleTables, parts: KeyRequestParts): KeyRequests {
  const { clock, random } = parts;
  const now = () => new Date(clock.now());
  const waiting = (code: string) =>
    and(eq(rows.codeHash, hashOf(code)), eq(rows.state, 'waiting'), gt(rows.expiresAt, now()));
  const answer = (code: string, personId: string, change: Change) =>
    answered({ orm, rows, clock, random }, waiting(code), { ...change, personId });
  return {
    async make(asked, visit) {
      const open = await orm.$count(rows, and(eq(rows.state, 'waiting'), gt(rows.expiresAt, now())));
      if (open >= mostWaiting)
        throw new GatewayError('rate_limited', 'Too many programs wait for a key. Try again later.', {
          retryAfterMs: 60_000,
        });
      const deviceCode = makeSecret(random, '');
      const userCode = makeCode(random);
      const [createdAt, expiresAt] = [now(), new Date(clock.now() + lastsMs)];
      const hashes = { deviceHash: hashSecret(deviceCode), codeHash: hashOf(userCode) };
      const { state: clientState, ...returns } = visit ?? {};
      const row = { ...asked, ...hashes, ...returns, clientState, createdAt, expiresAt, intervalMs };
      await orm.insert(rows).values({ ...row, state: 'waiting' });
      return { deviceCode, userCode, lastsMs, intervalMs };
    },

    async find(code) {
      const [row] = await orm.select().from(rows).where(waiting(code));
      if (row === undefined) return undefined;
      const { program, machine, address, createdAt, expiresAt } = row;
      const visit = visitOf(row);
      const times = { createdAt: createdAt.getTime(), expiresAt: expiresAt.getTime() };
      return { program, machine, address, ...times, ...(visit === undefined ? {} : { visit }) };
    },

    grant: (code, { personId, accountId }, terms) => answer(code, personId, { state: 'granted', terms, accountId }),
    deny: (code, personId) => answer(code, personId, { state: 'denied' }),

    take: (code, by) => take(orm, rows, { code, by }, clock),

    async prune() {
      await orm.delete(rows).where(lt(rows.expiresAt, new Date(clock.now() - keptMs)));
    },
  };
}

interface Change {
  readonly state: 'granted' | 'denied';
  readonly terms?: string;
  readonly accountId?: string;
}

interface Store extends KeyRequestParts {
  readonly orm: Orm;
  readonly rows: ConsoleTables['keyRequests'];
}

/** `waiting`: the row, as long as it waits; of two answers at once the second one no longer finds it. */
async function answered(
  { orm, rows, clock, random }: Store,
  waiting: SQL | undefined,
  change: Change & { readonly personId: string },
): Promise<AnsweredRequest | undefined> {
  const [row] = await orm.select().from(rows).where(waiting);
  if (row === undefined) return undefined;
  const visit = visitOf(row);
  const code = visit !== undefined && change.state === 'granted' ? makeSecret(random, '') : undefined;
  const expiresAt = new Date(Math.min(row.expiresAt.getTime(), clock.now() + codeMs));
  const ended = await orm
    .update(rows)
    .set({ ...change, ...(code === undefined ? {} : { deviceHash: hashSecret(code), expiresAt }) })
    .where(waiting)
    .returning({ hash: rows.codeHash });
  if (ended.length === 0) return undefined;
  return { ...(visit === undefined ? {} : { visit }), ...(code === undefined ? {} : { code }) };
}

type Row = ConsoleTables['keyRequests']['$inferSelect'];

function visitOf({ clientId, redirectUri, challenge, clientState }: Row): Visit | undefined {
  if (clientId === null || redirectUri === null || challenge === null) return undefined;
  return { clientId, redirectUri, challenge, state: clientState ?? undefined };
}

async function take(
  orm: Orm,
  rows: ConsoleTables['keyRequests'],
  { code, by }: { readonly code: string; readonly by: 'device' | 'visit' },
  { now }: Clock,
): Promise<TakenKey> {
  // A code of one kind is of no use as the other.
  const kind = by === 'visit' ? isNotNull(rows.redirectUri) : isNull(rows.redirectUri);
  const own = and(eq(rows.deviceHash, hashSecret(code)), kind);
  const [row] = await orm.select().from(rows).where(own);
  if (row === undefined || row.state === 'used') return { state: 'unknown' };
  if (row.expiresAt.getTime() <= now()) return { state: 'expired' };
  const isEarly = row.askedAt !== null && now() < row.askedAt.getTime() + row.intervalMs - earlyMs;
  const nextMs = isEarly ? Math.min(row.intervalMs + intervalMs, longestIntervalMs) : row.intervalMs;
  const isUsed = row.state !== 'waiting' && !isEarly;
  const taken = await orm
    .update(rows)
    .set({ askedAt: new Date(now()), intervalMs: nextMs, ...(isUsed ? { state: 'used' } : {}) })
    // One of two questions at once no longer finds what it has read.
    .where(and(own, eq(rows.state, row.state)))
    .returning({ hash: rows.deviceHash });
  if (isEarly) return { state: 'early' };
  if (taken.length === 0) return { state: isUsed ? 'unknown' : 'waiting' };
  if (row.state !== 'granted') return { state: row.state };
  const { program, machine, personId, accountId, terms } = row;
  const visit = visitOf(row);
  const granted = { program, machine, personId: personId!, accountId: accountId ?? undefined, terms: terms! };
  return { state: 'granted', ...granted, ...(visit === undefined ? {} : { visit }) };
}
