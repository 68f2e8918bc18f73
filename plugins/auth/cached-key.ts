/** A key as it is kept in memory, made of its row. */
import type { Caller } from '../common/domain/accounts.ts';
import { parseRatio } from '../common/domain/money.ts';
import { inBoth } from '../common/domain/organizations/placement.ts';
import { AddressList } from './addresses.ts';
import { capOf } from './key-terms.ts';
import type { ValidKey } from './store.ts';
import { fixedTags, type KeyTags, keyTags } from './tags.ts';

const never = Number.POSITIVE_INFINITY;

export interface CachedKey {
  readonly caller: Caller;
  /** As stored in the database and named in announcements. */
  readonly hash: string;
  /** What it is read again by: the hash of the secret that was sent, which a later one may have replaced. */
  readonly foundBy: string;
  /** When the key ends, or the secret that was sent. */
  readonly expiresAtMs: number;
  readonly disabled: boolean;
  /** Name of its project if that is archived. */
  readonly archivedProject: string | undefined;
  /** The addresses that may use the key; undefined: any. */
  readonly addresses: AddressList | undefined;
  /** undefined: it has and takes none. */
  readonly tags: KeyTags | undefined;
  /** Monotonic time of the last database check. */
  checkedAtMs: number;
  /** Monotonic time since which its account is known to have changed: it is read again before its next use. */
  changedAtMs: number | undefined;
}

export function toCachedKey(row: ValidKey, checkedAtMs: number): CachedKey {
  const cap = capOf(row);
  const ownTags = row.tags === null ? undefined : keyTags(row.tags);
  const tags = ownTags && fixedTags(ownTags);
  return {
    hash: row.hash,
    foundBy: row.replacedDigest ?? row.hash,
    caller: {
      accountId: row.accountId,
      keyId: row.keyId,
      plan: row.plan,
      planEndsAt: row.planEndsAt?.getTime(),
      models: row.models === null ? undefined : new Set(row.models),
      ...attributionOf(row),
      ...(row.access === 'organization' ? { access: row.access } : {}),
      ...ofAccount(row),
      ...boundTo(row),
      ...(row.limits === null ? {} : { keyLimits: row.limits }),
      ...(cap === undefined ? {} : { cap }),
      ...(row.images === 'wait' ? { waitsForImages: true } : {}),
      ...(tags === undefined ? {} : { tags }),
    },
    tags: ownTags,
    addresses: row.addresses === null ? undefined : new AddressList(row.addresses),
    expiresAtMs: Math.min(row.expiresAt?.getTime() ?? never, row.replacedEndsAt?.getTime() ?? never),
    disabled: row.disabled,
    archivedProject: row.projectArchivedAt === null ? undefined : (row.project ?? undefined),
    checkedAtMs,
    changedAtMs: undefined,
  };
}

function ofAccount({ multiplier, retention }: ValidKey): Partial<Caller> {
  return {
    ...(multiplier === null ? {} : { multiplier: parseRatio(multiplier) }),
    ...(retention === null ? {} : { retention }),
  };
}

function boundTo({ regions, projectRegions }: ValidKey): Partial<Caller> {
  const allowed = inBoth(setOf(regions), setOf(projectRegions));
  return allowed === undefined ? {} : { regions: allowed };
}

const setOf = (names: readonly string[] | null) => (names === null ? undefined : new Set(names));

/** What its calls are for. */
function attributionOf({ project, projectModels, person, projectId }: ValidKey): Partial<Caller> {
  return {
    ...(project === null ? {} : { project }),
    ...(projectModels === null ? {} : { projectModels: new Set(projectModels) }),
    ...(person === null && projectId === null
      ? {}
      : { attribution: { person: person ?? undefined, project: projectId ?? undefined } }),
  };
}
