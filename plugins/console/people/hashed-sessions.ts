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
    async create(query) {
      const { token } = query.data as { token?: unknown };
      if (query.model !== 'session' || typeof token !== 'string') return inner.create(query);
      const made = await inner.create({ ...query, data: { ...query.data, token: sessionHash(token) } });
      return { ...(made as object), token } as never;
    },
    findOne: async (query) => withToken(query, await inner.findOne(looking(query))) as never,
    findMany: (query) => inner.findMany(looking(query)),
    count: (query) => inner.count(looking(query)),
    update: async (query) => withToken(query, await inner.update(looking(query))) as never,
    updateMany: (query) => inner.updateMany(looking(query)),
    delete: (query) => inner.delete(ending(query)),
    deleteMany: (query) => inner.deleteMany(ending(query)),
    transaction: (work) => work(outer),
  };
  return outer;
}

interface SessionQuery {
  readonly model: string;
  where?: Where[] | undefined;
}

function looking<Question extends SessionQuery>(query: Question): Question {
  return hashed(query, sessionHash);
}

/** Sessions shown in a list may be ended. */
function ending<Question extends SessionQuery>(query: Question): Question {
  return hashed(query, (token) => (token.startsWith(mark) ? token : sessionHash(token)));
}

function hashed<Question extends SessionQuery>(query: Question, hash: (token: string) => string): Question {
  if (query.model !== 'session' || query.where === undefined) return query;
  const where = query.where.map((term): Where => {
    if (term.field !== 'token') return term;
    const { value } = term;
    return { ...term, value: Array.isArray(value) ? value.map((one) => hash(String(one))) : hash(String(value)) };
  });
  return { ...query, where };
}

function withToken(query: SessionQuery, found: unknown): unknown {
  if (query.model !== 'session' || found === null || typeof found !== 'object') return found;
  const given = query.where?.find(({ field }) => field === 'token')?.value;
  return typeof given === 'string' ? { ...found, token: given } : found;
}
