/** The key that stands for a workload: made with its first token, without a secret; its account limits and revokes it as any other. */
import { hash } from 'node:crypto';
import { and, eq, isNull } from 'drizzle-orm';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Clock } from '../../../core/contract/host-tools.ts';
import type { Database } from '../../common/domain/database.ts';
import { isDuplicateName } from '../account-queries.ts';
import { noSecretMark } from '../key.ts';
import { rowOfTerms } from '../key-terms.ts';
import type { Store } from '../store.ts';
import { authTables } from '../tables.ts';

/** Who calls, by what a verified token says. */
export interface Workload {
  readonly issuer: string;
  readonly audience: string;
  /** By name or id. */
  readonly account: string;
  readonly project: string | undefined;
  readonly person: string | undefined;
  readonly models: readonly string[] | undefined;
}

interface WorkloadParts {
  readonly database: Database;
  readonly store: Pick<Store, 'findAccount' | 'insertKey'>;
  readonly clock: Clock;
  /** Whether a person is a member of an account. */
  isMember(accountId: string, person: string): Promise<boolean>;
}

const mostKeys = 1_000;
const longestName = 100;

export function workloadKeys({ database, store, clock, isMember }: WorkloadParts) {
  const { orm } = database;
  const { keys } = authTables(database.schema);
  const find = async (digest: string) =>
    (await orm.select({ id: keys.id, revokedAt: keys.revokedAt }).from(keys).where(eq(keys.hash, digest)))[0];

  async function make(workload: Workload, accountId: string, digest: string): Promise<string> {
    const { person, project, models, issuer } = workload;
    if (person !== undefined && !(await isMember(accountId, person))) throw notAdmitted();
    const active = and(eq(keys.accountId, accountId), isNull(keys.revokedAt));
    if ((await orm.$count(keys, active)) >= mostKeys) throw notAdmitted();
    const { host } = new URL(issuer);
    const row = {
      ...rowOfTerms({ name: host.slice(0, longestName), project, models }),
      ...{ accountId, prefix: `jwt:${digest.slice(noSecretMark.length, noSecretMark.length + 8)}`, hash: digest },
      ...{ createdAt: new Date(clock.now()), person: person ?? null, access: null },
    };
    return store.insertKey(row, []);
  }

  return async (workload: Workload): Promise<string> => {
    const account = await store.findAccount(workload.account);
    if (account === undefined) throw notAdmitted();
    const digest = digestOf(workload, account.id);
    const found = await find(digest);
    if (found !== undefined) return idOf(found);
    try {
      return await make(workload, account.id, digest);
    } catch (error) {
      // Another process has made it.
      const made = isDuplicateName(error) ? await find(digest) : undefined;
      if (made === undefined) throw error;
      return idOf(made);
    }
  };
}

/** All that restricts it is part of its identity, so that work which outlives its request stays restricted. */
function digestOf({ issuer, audience, project, person, models }: Workload, accountId: string): string {
  const sorted = models === undefined ? null : [...new Set(models)].sort();
  const identity = [issuer, audience, accountId, project ?? null, person ?? null, sorted];
  return noSecretMark + hash('sha256', JSON.stringify(identity), 'base64url');
}

function idOf({ id, revokedAt }: { readonly id: string; readonly revokedAt: Date | null }): string {
  if (revokedAt === null) return id;
  throw new GatewayError('unauthenticated', 'The key of the workloads with this token is revoked.', {
    code: 'invalid_jwt',
  });
}

const notAdmitted = () =>
  new GatewayError('forbidden', 'The account, project or person of the token is not admitted here.', {
    code: 'token_not_admitted',
  });
