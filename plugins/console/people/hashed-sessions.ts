/** Keeps session tokens as hashes: a reader of the database cannot use them. Wraps better-auth's database adapter. */
import type { DBAdapter, Where } from '@better-auth/core/db/adapter';
import { hashSecret } from './secrets.ts';

/** Lists of sessions show this instead of the token: enough to end one, not to be one. */
const mark = 'h.';

export function sessionHash(token: string): string {
  return mark + hashSecret(token);
}

/**
 * Sessions go in and are looked for by the hash of their token, and are returned with the given token. Work
 * in a transaction runs step by step: a gateway with the embedded database has one connection, and hashing a
 * password must not keep it.
 */
export function withHashedSessions(inner: DBAdapter): DBAdapter {
  const outer: DBAdapter = {
    ...inner,
    async create(asked) {
      const { token } = asked.data as { token?: unknown };
      if (asked.model !== 'session' || typeof token !== 'string') return inner.create(asked);
      const made = await inner.create({ ...asked, data: { ...asked.data, token: sessionHash(token) } });
      return { ...(made as object), token } as never;
    },
    findOne: async (asked) => withToken(asked, await inner.findOne(looking(asked))) as never,
    findMany: (asked) => inner.findMany(looking(asked)),
    count: (asked) => inner.count(looking(asked)),
    update: async (asked) => withToken(asked, await inner.update(looking(asked))) as never,
    updateMany: (asked) => inner.updateMany(looking(asked)),
    delete: (asked) => inner.delete(ending(asked)),
    deleteMany: (asked) => inner.deleteMany(ending(asked)),
    transaction: (work) => work(outer),
  };
  return outer;
}

interface SessionQuery {
  readonly model: string;
  where?: Where[] | undefined;
}

function looking<Question extends SessionQuery>(asked: Question): Question {
  return hashed(asked, sessionHash);
}

/** Sessions shown in a list may be ended. */
function ending<Question extends SessionQuery>(asked: Question): Question {
  return hashed(asked, (token) => (token.startsWith(mark) ? token : sessionHash(token)));
}

function hashed<Question extends SessionQuery>(asked: Question, hash: (token: string) => string): Question {
  if (asked.model !== 'session' || asked.where === undefined) return asked;
  const where = asked.where.map((term): Where => {
    if (term.field !== 'token') return term;
    const { value } = term;
    return { ...term, value: Array.isArray(value) ? value.map((one) => hash(String(one))) : hash(String(value)) };
  });
  return { ...asked, where };
}

function withToken(asked: SessionQuery, found: unknown): unknown {
  if (asked.model !== 'session' || found === null || typeof found !== 'object') return found;
  const given = asked.where?.find(({ field }) => field === 'token')?.value;
  return typeof given === 'string' ? { ...found, token: given } : found;
}
