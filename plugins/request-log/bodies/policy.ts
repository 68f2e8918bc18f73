/** Which requests are recorded: the rules of the file, and recordings that operators have started. */

import type { Accounts } from '../../common/domain/accounts.ts';
import type { Recording } from '../../common/domain/admin/recorded-bodies.ts';
import { Secrets } from './secrets.ts';
import type { BodiesConfig, BodyRule } from './settings.ts';

/** The properties of a request that rules match, known when its answer begins. */
export interface RequestTraits {
  readonly accountId: string | undefined;
  readonly keyId: string | undefined;
  readonly model: string | undefined;
}

/** `errors`: decided by the outcome when the request has ended. */
export type Choice = 'all' | 'errors' | undefined;

/** Account ids by the names that rules use. */
export type KnownAccounts = ReadonlyMap<string, string>;

export class BodyPolicy {
  readonly config: BodiesConfig;
  readonly secrets: Secrets;
  #ids: KnownAccounts;

  constructor(config: BodiesConfig, ids: KnownAccounts) {
    this.config = config;
    this.#ids = ids;
    this.secrets = new Secrets({
      names: config.mask,
      emails: config.personal.includes('emails'),
      cards: config.personal.includes('cards'),
    });
  }

  applyConfig(ids: KnownAccounts): void {
    this.#ids = ids;
  }

  get ids(): KnownAccounts {
    return this.#ids;
  }

  /** `now` in wall-clock milliseconds; `chance` returns a number from 0 to below 1. */
  choose(requested: RequestTraits, recordings: readonly Recording[], now: number, chance: () => number): Choice {
    let choice: Choice;
    for (const recording of recordings) {
      if (recording.until <= now || !records(recording, requested)) continue;
      if (!recording.errorsOnly) return 'all';
      choice = 'errors';
    }
    for (const rule of this.config.of) {
      if (!this.#fits(rule, requested) || (rule.share < 1 && chance() >= rule.share)) continue;
      if (rule.when === 'all') return 'all';
      choice = 'errors';
    }
    return choice;
  }

  #fits({ accounts, keys, models }: BodyRule, { accountId, keyId, model }: RequestTraits): boolean {
    if (keys !== undefined && (keyId === undefined || !keys.includes(keyId))) return false;
    if (models !== undefined && (model === undefined || !models.includes(model))) return false;
    if (accounts === undefined) return true;
    return accountId !== undefined && accounts.some((named) => (this.#ids.get(named) ?? named) === accountId);
  }
}

function records({ accountId, keyId, model }: Recording, requested: RequestTraits): boolean {
  return (
    (accountId === undefined || accountId === requested.accountId) &&
    (keyId === undefined || keyId === requested.keyId) &&
    (model === undefined || model === requested.model)
  );
}

/** The ids of the accounts that rules name; unknown names are left out. Rejects when the database cannot be read. */
export async function accountsIn({ of }: BodiesConfig, accounts: Accounts | undefined): Promise<KnownAccounts> {
  const ids = new Map<string, string>();
  for (const named of new Set(of.flatMap((rule) => rule.accounts ?? []))) {
    const account = await accounts?.find(named);
    if (account !== undefined) ids.set(named, account.id);
  }
  return ids;
}
