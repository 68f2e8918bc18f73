/** Programs that ask a person for a key (RFC 8628): one row for each, for minutes. The key is made when the program takes it, so none is kept. */
import { and, eq, gt, lt } from 'drizzle-orm';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Clock, Random } from '../../../core/contract/host-tools.ts';
import type { Orm } from '../../common/domain/database.ts';
import { hashSecret, makeSecret } from '../people/secrets.ts';
import type { ConsoleTables } from '../people/tables.ts';
import type { KeyRequests, TakenKey } from '../people.ts';

/** Long enough to sign in, too short to be guessed. */
const lastsMs = 10 * 60_000;
/** For this time a program that comes late learns why. */
const keptMs = 3_600_000;
const intervalMs = 5_000;
const longestIntervalMs = 60_000;
/** Clocks and lines of programs are not exact. */
const earlyMs = 500;
const mostWaiting = 10_000;

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
  const end = async (
    code: string,
    personId: string,
    change: { state: 'granted' | 'denied'; terms?: string; accountId?: string },
  ) => {
    const ended = await orm
      .update(rows)
      .set({ ...change, personId })
      .where(waiting(code))
      .returning({ hash: rows.codeHash });
    return ended.length === 1;
  };
  return {
    async make(asked) {
      const open = await orm.$count(rows, and(eq(rows.state, 'waiting'), gt(rows.expiresAt, now())));
      if (open >= mostWaiting)
        throw new GatewayError('rate_limited', 'Too many programs wait for a key. Try again later.', {
          retryAfterMs: 60_000,
        });
      const deviceCode = makeSecret(random, '');
      const userCode = makeCode(random);
      const [createdAt, expiresAt] = [now(), new Date(clock.now() + lastsMs)];
      const hashes = { deviceHash: hashSecret(deviceCode), codeHash: hashOf(userCode) };
      await orm.insert(rows).values({ ...asked, ...hashes, createdAt, expiresAt, intervalMs, state: 'waiting' });
      return { deviceCode, userCode, lastsMs, intervalMs };
    },

    async find(code) {
      const [row] = await orm.select().from(rows).where(waiting(code));
      if (row === undefined) return undefined;
      const { program, machine, address, createdAt, expiresAt } = row;
      return { program, machine, address, createdAt: createdAt.getTime(), expiresAt: expiresAt.getTime() };
    },

    grant: (code, { personId, accountId }, terms) => end(code, personId, { state: 'granted', terms, accountId }),
    deny: (code, personId) => end(code, personId, { state: 'denied' }),

    take: (deviceCode) => take(orm, rows, deviceCode, clock),

    async prune() {
      await orm.delete(rows).where(lt(rows.expiresAt, new Date(clock.now() - keptMs)));
    },
  };
}

async function take(
  orm: Orm,
  rows: ConsoleTables['keyRequests'],
  deviceCode: string,
  { now }: Clock,
): Promise<TakenKey> {
  const own = eq(rows.deviceHash, hashSecret(deviceCode));
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
  const by = { personId: personId!, accountId: accountId ?? undefined };
  return { state: 'granted', program, machine, ...by, terms: terms! };
}
