/** The customers' API keys: who has which, who calls with one, and who makes, changes and revokes them. */
import { accountAdmin, type KeyTerms } from '../../plugins/common/domain/admin/accounts.ts';
import { money } from '../../plugins/common/domain/money.ts';
import { simulatedTag } from './budgets.ts';
import type { CallersOracle } from './callers-oracle.ts';
import type { Chance } from './chance.ts';
import type { Errands } from './errands.ts';
import type { Process } from './process.ts';
import type { Profile } from './profile.ts';

/** Keys of one account that somebody calls with; older ones are forgotten. */
const mostUsed = 4;

/** To whom keys belong in turn; undefined: one is a service's. */
const people = [undefined, '00000000-0000-4000-8000-000000000001', '00000000-0000-4000-8000-000000000002'];
interface UsedKey {
  readonly id: string;
  /** What its owner writes into a header. */
  readonly text: string;
  readonly tags: readonly string[];
  isRevoked: boolean;
}

export interface CallersOptions {
  readonly chance: Chance;
  readonly profile: Profile;
  readonly oracle: CallersOracle;
  readonly errands: Errands;
}

export class Callers {
  readonly #options: CallersOptions;
  /** By account. */
  readonly #used = new Map<string, UsedKey[]>();
  #made = 0;

  constructor(options: CallersOptions) {
    this.#options = options;
  }

  begin(): void {
    for (const { id } of this.#options.profile.accounts) for (let count = 0; count < 2; count += 1) this.#make(id);
  }

  /** A key to call with: one of those that its account has, or had. undefined: it has none. */
  keyOf(account: string): string | undefined {
    const { chance } = this.#options;
    const keys = this.#used.get(account);
    if (keys === undefined) return undefined;
    const revoked = keys.filter(({ isRevoked }) => isRevoked);
    return chance.pick(revoked.length > 0 && chance.oneIn(2) ? revoked : keys).text;
  }

  /** Somebody makes, changes or revokes a key. */
  happen(): void {
    const { chance, profile } = this.#options;
    const { id: account } = chance.pick(profile.accounts);
    const live = (this.#used.get(account) ?? []).filter(({ isRevoked }) => !isRevoked);
    if (live.length < 2 || chance.oneIn(4)) this.#make(account);
    else if (chance.oneIn(2)) this.#revoke(account, chance.pick(live));
    else this.#change(account, chance.pick(live));
  }

  /** What came of it may be unknown: then no one ever calls with that key. */
  #make(account: string): void {
    this.#made += 1;
    const person = people[this.#made % 3];
    const tags = this.#made % 2 === 0 ? [simulatedTag] : [];
    const terms = this.#draw(tags);
    this.#options.errands.run({
      label: 'make a key',
      work: (process) => process.host.get(accountAdmin).createKey(account, terms(process), person),
      reported: ({ id, key }) => this.#use(account, { id, text: key, tags, isRevoked: false }),
      refused: () => {},
      unknown: () => {},
    });
  }

  #revoke(account: string, key: UsedKey): void {
    key.isRevoked = true;
    this.#options.errands.run({
      label: 'revoke a key',
      work: (process) => process.host.get(accountAdmin).revokeKey(account, key.id),
      reported: () => this.#options.oracle.reportedRevoked(key.id),
    });
  }

  #change(account: string, key: UsedKey): void {
    const terms = this.#draw(key.tags);
    this.#options.errands.run({
      label: 'change a key',
      work: (process) => process.host.get(accountAdmin).updateKey(account, key.id, terms(process)),
      reported: () => {},
      refused: () => {},
    });
  }

  /** Some end soon, some may spend only so much. */
  #draw(tags: readonly string[]): (process: Process) => KeyTerms {
    const { chance, profile } = this.#options;
    const livesMs = chance.oneIn(3) ? chance.between(200, 4_000) : undefined;
    const most = Number(profile.topUp);
    const cap = chance.oneIn(2)
      ? { amount: money(BigInt(chance.between(1, most))), every: 'ever' as const }
      : undefined;
    return ({ host }) => ({
      name: 'simulated',
      expiresAt: livesMs === undefined ? undefined : host.clock.now() + livesMs,
      cap,
      tags,
    });
  }

  #use(account: string, key: UsedKey): void {
    const used = this.#used.get(account) ?? [];
    if (used.some(({ id }) => id === key.id)) return;
    this.#used.set(account, [...used.slice(-(mostUsed - 1)), key]);
  }
}
