/** The shop's tables in memory: redeem codes with their uses, and the plan that each account is on. */
import { money } from '../../plugins/common/domain/money.ts';
import type { CodeStore, NewCodes } from '../../plugins/shop/store.ts';
import type { DatabaseLink } from './database.ts';
import { atCommit, putIn, undoOf } from './memory-undo.ts';

type Code = Awaited<ReturnType<CodeStore['lock']>> & object;

interface StoredCode extends Omit<Code, 'uses'> {
  readonly hash: string;
}

/** One use of a code. */
export interface Use {
  readonly codeId: string;
  readonly number: number;
  readonly account: string;
  /** Wall-clock milliseconds. */
  readonly at: number;
}

export interface StoredPlan {
  readonly plan: string;
  readonly endsAt: number | undefined;
}

export class ShopTables {
  readonly codes = new Map<string, StoredCode>();
  /** By code and number. */
  readonly uses = new Map<string, Use>();
  /** Plans of accounts that were put on one. */
  readonly plans = new Map<string, StoredPlan>();
  /** Called for each use that is committed. */
  onUse: (use: Use) => void = () => {};
  readonly #usesOf = new Map<string, number>();
  #count = 0;

  insert({ codes, batch, gift, maxUses, oncePerAccount, expiresAt, createdAt }: NewCodes): void {
    const isNew = codes.every(({ hash }, index) => {
      return !this.codes.has(hash) && codes.findIndex((code) => code.hash === hash) === index;
    });
    if (!isNew) throw new Error('duplicate key: codes_hash_key');
    for (const { hash, prefix } of codes) {
      this.#count += 1;
      const id = `00000000-0000-4000-a000-${this.#count.toString(16).padStart(12, '0')}`;
      const shared = { batch, gift, maxUses, oncePerAccount, expiresAt, createdAt, revokedAt: undefined };
      this.codes.set(hash, { ...shared, id, hash, prefix });
    }
  }

  revoke(named: string, hash: string, at: number): number {
    let revoked = 0;
    for (const code of this.codes.values()) {
      const isNamed = code.batch === named || code.id === named || code.hash === hash;
      if (code.revokedAt !== undefined || !isNamed) continue;
      this.codes.set(code.hash, { ...code, revokedAt: at });
      revoked += 1;
    }
    return revoked;
  }

  /** As one transaction sees it that has the code's lock. */
  read(hash: string): Code | undefined {
    const code = this.codes.get(hash);
    if (code === undefined) return undefined;
    const { hash: _, gift, ...rest } = code;
    const copy = gift.kind === 'balance' ? { ...gift, amount: money(gift.amount) } : { ...gift };
    return { ...rest, gift: copy, uses: this.usesOf(code.id) };
  }

  usesOf(codeId: string): number {
    return this.#usesOf.get(codeId) ?? 0;
  }

  isUsedBy(codeId: string, account: string): boolean {
    for (let number = this.usesOf(codeId); number > 0; number -= 1) {
      if (this.uses.get(`${codeId} ${number}`)?.account === account) return true;
    }
    return false;
  }

  addUse(transaction: object, use: Use): void {
    const key = `${use.codeId} ${use.number}`;
    if (use.number < 1) throw new Error('violates check constraint "redemptions_number_check"');
    if (this.uses.has(key)) throw new Error('duplicate key: redemptions_pkey');
    const undo = undoOf(transaction);
    putIn(this.uses, key, use, undo);
    putIn(this.#usesOf, use.codeId, this.usesOf(use.codeId) + 1, undo);
    atCommit(transaction, () => this.onUse(use));
  }

  setPlan(transaction: object, account: string, plan: string, endsAt: number | undefined): void {
    putIn(this.plans, account, { plan, endsAt }, undoOf(transaction));
  }
}

/** One process's way to the codes. What runs inside a transaction has come there with it. */
export function memoryCodes(tables: ShopTables, link: Pick<DatabaseLink, 'send'>): CodeStore {
  return {
    insert: (codes) => link.send('make codes', async () => tables.insert(codes)),
    lock: async (_transaction, hash) => tables.read(hash),
    isRedeemedBy: async (_transaction, codeId, account) => tables.isUsedBy(codeId, account),
    insertUse: async (transaction, codeId, number, account, at) =>
      tables.addUse(transaction, { codeId, number, account, at }),
    revoke: (named, hash, at) => link.send('revoke codes', async () => tables.revoke(named, hash, at)),
  };
}
