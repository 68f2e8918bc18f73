/** The terms of the database in memory: plans that accounts have bought. */
import type { CreditLine } from '../../plugins/billing/grants/credit-rows.ts';
import { clocksDifferMs, type StoredTerm, type TermRows } from '../../plugins/billing/grants/term-rows.ts';
import type { Undo } from './memory-undo.ts';

type Term = { -readonly [Key in keyof StoredTerm]: StoredTerm[Key] };

export class MemoryTerms {
  /** In the order in which they were added. */
  readonly byAccount = new Map<string, Term[]>();
  /** Decisions on credit lines, by account. */
  readonly lines = new Map<string, readonly CreditLine[]>();
  #count = 0;

  /** Names that term, and the decision on a credit line that counts. */
  nameOf(account: string): string | undefined {
    const line = this.lines.get(account)?.length;
    return line === undefined ? this.newestOf(account) : `${this.newestOf(account) ?? ''} credit ${line}`;
  }

  /** Names the term that began last, by whatever time. */
  newestOf(account: string): string | undefined {
    return newest(this.byAccount.get(account) ?? [])?.id;
  }

  /** As the account's time is made of a node's. */
  momentOf(account: string, at: number): number {
    const later = (this.byAccount.get(account) ?? []).filter(({ startsAt }) => startsAt <= at + clocksDifferMs);
    return later.reduce((moment, { startsAt }) => Math.max(moment, startsAt), at);
  }

  rowsOf(account: string, undo: Undo): TermRows {
    const terms = this.byAccount.get(account) ?? [];
    return {
      last: async (at) => {
        const found = newest(terms.filter(({ startsAt }) => startsAt <= at));
        return found && { ...found };
      },
      hasEnded: async (plan, since) =>
        terms.some((term) => term.plan === plan && (term.endsAt ?? Number.POSITIVE_INFINITY) > since),
      endAll: async (at) => {
        for (const term of terms) if (term.endsAt === undefined || term.endsAt > at) change(term, at, undo);
      },
      add: async (term) => {
        this.#count += 1;
        terms.push({ ...term, id: `00000000-0000-4000-9000-${this.#count.toString(16).padStart(12, '0')}` });
        this.byAccount.set(account, terms);
        undo.push(() => terms.pop());
      },
      setEnd: async (termId, endsAt) => {
        const term = terms.find(({ id }) => id === termId);
        if (term !== undefined) change(term, endsAt, undo);
      },
    };
  }
}

/** `order by starts_at desc, ends_at desc nulls first`. */
function newest(terms: readonly Term[]): Term | undefined {
  const end = ({ endsAt }: Term) => endsAt ?? Number.POSITIVE_INFINITY;
  return [...terms].sort((left, right) => right.startsAt - left.startsAt || end(right) - end(left))[0];
}

function change(term: Term, endsAt: number | undefined, undo: Undo): void {
  const before = term.endsAt;
  term.endsAt = endsAt;
  undo.push(() => {
    term.endsAt = before;
  });
}
