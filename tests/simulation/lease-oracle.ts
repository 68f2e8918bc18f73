/** Watches accounts that several nodes spend (M7): nothing is leased or held beyond the balance but what settlements took beyond their holds. */
import type { Entry, MemoryLedger, Row } from './memory-ledger.ts';
import type { AccountView, Oracle, SharedAccounts } from './oracle.ts';
import type { Life } from './schedule.ts';
import { coverOf } from './tariff.ts';
import type { Trace } from './trace.ts';

export class LeaseOracle implements SharedAccounts {
  readonly #ledger: MemoryLedger;
  readonly #oracle: Oracle;
  /** What settlements took beyond their holds, which no one could know before; forgotten when the account has come to rest. */
  readonly #beyond = new Map<string, bigint>();

  /** Accounts of which a settlement or an end of a grant ever took more: holds of before may be without a lease. */
  readonly #overdrawn = new Set<string>();
  /** Which journal a process writes. */
  readonly #journals = new Map<Life, string>();

  constructor(ledger: MemoryLedger, oracle: Oracle) {
    this.#ledger = ledger;
    this.#oracle = oracle;
    ledger.onRow = (row, leased) => this.#row(row, leased);
    ledger.onCommit = (account) => this.#committed(account);
  }

  /** O is exact here: the sum of what settlements took beyond their holds. */
  #row({ account, request, amount, balanceAfter }: Row, leased: bigint): void {
    const cost = -amount;
    const held = BigInt(this.#ledger.calls.get(request!)!.held);
    const beyond = (this.#beyond.get(account) ?? 0n) + (cost > held ? cost - held : 0n);
    if (cost > held) this.#overdrawn.add(account);
    this.#beyond.set(account, beyond);
    const reported = `${-beyond} is the least`;
    const left = balanceAfter - this.#ledger.accounts.get(account)!.held;
    if (left + beyond < 0n) this.#oracle.violations.add('M7', account, `a charge leaves ${left} nano-USD, ${reported}`);
    if (leased + beyond < 0n)
      this.#oracle.violations.add('M7', account, `a charge leaves ${leased} nano-USD of its lease, ${reported}`);
  }

  /** What was left of a grant was taken off: running calls, and nodes that were away, may have counted on it. */
  expired({ account }: Entry): void {
    const uncovered = this.#ledger.leases.claimsOn(account) - this.#ledger.accounts.get(account)!.balance;
    this.#overdrawn.add(account);
    if (uncovered > (this.#beyond.get(account) ?? 0n)) this.#beyond.set(account, uncovered);
  }

  #committed(account: string): void {
    const balance = this.#ledger.accounts.get(account)?.balance ?? 0n;
    const leased = this.#ledger.leases.sumOf(account);
    const beyond = this.#beyond.get(account) ?? 0n;
    const there = balance > 0n ? balance : 0n;
    if (this.isAtRest(this.#oracle.view(account))) this.#beyond.delete(account);
    else if (leased > there + beyond) {
      this.#oracle.violations.add('M6', account, `${leased} nano-USD are leased of ${balance}`);
    }
  }

  /** What the account's calls at this process hold at first, or cost if the ledger lacks that, is leased to it. */
  admitted({ life, account }: Trace, traces: Iterable<Trace>): void {
    if (this.#overdrawn.has(account)) return;
    const leased = this.#ledger.leases.amountOf(account, this.#journals.get(life)!);
    let owed = 0n;
    for (const trace of traces) {
      if (trace.account !== account || !trace.admitted || this.#ledger.hasEnded(trace.id)) continue;
      const held = coverOf(trace.inputTokens, trace.heldOutput, trace.list, trace.ratio);
      owed += trace.expected !== undefined && trace.expected < held ? trace.expected : held;
    }
    if (owed > leased + (this.#beyond.get(account) ?? 0n))
      this.#oracle.violations.add('M6', account, `calls of one process need ${owed} nano-USD of a lease of ${leased}`);
  }

  leasedOf(account: string): bigint {
    return this.#ledger.leases.sumOf(account);
  }

  isAtRest({ id, credited, settled, open }: AccountView): boolean {
    const { accounts, leases } = this.#ledger;
    const balance = accounts.get(id)?.balance ?? 0n;
    const isCutOff = [...this.#oracle.uncertain].some(({ account }) => account === id);
    const isKnown = open.size === 0 && !isCutOff && balance === credited - settled;
    return isKnown && leases.sumOf(id) <= balance && !leases.isOwed(id);
  }

  /** A process begins to serve: what the one before it had leased was returned. */
  recovered(journal: string, life: Life): void {
    this.#journals.set(life, journal);
    const left = this.#ledger.leases.countOf(journal);
    if (left > 0) this.#oracle.violations.add('M16', journal, `${left} leases of a dead process are kept`);
  }

  /** All nodes have left. */
  finish(): void {
    if (!this.#ledger.leases.isEmpty) this.#oracle.violations.add('M16', 'leases', 'not all were given back');
  }
}
