/** The oracle's look into the ledger: each request's rows against its timeline, and all rows against each other. */
import type { AttemptNote, EndRecord } from '../../plugins/billing/model/records.ts';
import type { MemoryLedger, Row } from './memory-ledger.ts';
import type { Oracle } from './oracle.ts';
import { costOf } from './tariff.ts';
import type { Trace, Try } from './trace.ts';

export class Audit {
  readonly #oracle: Oracle;
  readonly #ledger: MemoryLedger;
  readonly #rowsByRequest = new Map<string, Row[]>();
  #read = 0;

  constructor(oracle: Oracle, ledger: MemoryLedger) {
    this.#oracle = oracle;
    this.#ledger = ledger;
  }

  /** A process has recovered what an earlier one left: what became of its calls stands in the ledger now. */
  recovered(node: number): void {
    this.#readNewRows();
    for (const trace of this.#oracle.uncertain) {
      if (trace.node !== node) continue;
      this.#oracle.uncertain.delete(trace);
      this.#oracle.charge(this.#oracle.view(trace.account), this.#check(trace));
    }
    this.#sums();
  }

  /** Everything has come to rest. */
  finish(): void {
    this.#readNewRows();
    for (const trace of this.#oracle.traces.values()) if (!trace.settled) this.#check(trace);
    for (const id of this.#rowsByRequest.keys()) {
      if (!this.#oracle.traces.has(id) && !this.#oracle.tasks.traces.has(id))
        this.#fault('M3', id, 'rows of a request that no one made');
    }
    this.#sums();
    this.#chain();
    this.#credits();
    this.#grantBalances();
    this.#oracle.keys.finish(this.#ledger);
    for (const view of this.#oracle.accounts.values()) {
      const stored = this.#ledger.accounts.get(view.id)?.balance ?? 0n;
      const right = view.credited - view.settled;
      if (stored !== right) this.#fault('M1', view.id, `the balance is ${stored}, it must be ${right}`);
    }
  }

  /** Holds a timeline's rows against what happened. Returns what it was charged. */
  #check(trace: Trace): bigint {
    trace.settled = true;
    const rows = this.#rowsByRequest.get(trace.id) ?? [];
    const call = this.#ledger.callOf(trace.id);
    if (rows.length > 1) this.#fault('M3', trace.id, `${rows.length} charges`);
    let cost = 0n;
    for (const row of rows) {
      cost -= row.amount;
      if (row.account !== trace.account) this.#fault('M3', trace.id, 'a row of another account');
    }
    if (call !== undefined && call.account !== trace.account) this.#fault('M3', trace.id, 'a call of another account');
    this.#checkCost(trace, call, cost);
    this.#checkUsage(trace, call, cost);
    if (call === undefined) return cost;
    this.#checkAttempts(trace);
    this.#checkBearers(trace, call);
    return cost;
  }

  #checkCost(trace: Trace, call: EndRecord | undefined, cost: bigint): void {
    const { crash, expected } = trace;
    if (cost < 0n) this.#fault('M9', trace.id, `charged ${cost}`);
    if (crash === undefined) {
      if (cost !== expected) this.#fault('M4', trace.id, `charged ${cost}, it must be ${expected}`);
      return;
    }
    if (trace.ended && cost === expected) return;
    const wasSent = trace.departed > 0 && trace.departedLine <= crash.safeLine;
    if (call?.kind !== 'SETTLE') {
      if (wasSent) this.#fault('M16', trace.id, 'sent before the crash, and not charged');
      return;
    }
    const output = call.usage.output ?? 0;
    const left = trace.tries.filter((_try, index) => this.#ledger.attempts.has(`${trace.id} ${index + 1}`));
    const last = left.reduce<Try | undefined>(
      (one, two) => (two.departure > (one?.departure ?? -1) ? two : one),
      undefined,
    );
    const list = last?.list ?? trace.list;
    const estimate = costOf({ input: trace.inputTokens, output, ...trace.counted }, list, trace.ratio);
    const isNoted = output >= trace.noted && output <= trace.seen;
    if (trace.departed === 0 || !isNoted || cost !== estimate) {
      this.#fault('M16', trace.id, `charged ${cost} for ${output} tokens, noted were ${trace.noted} of ${trace.seen}`);
    }
  }

  #checkUsage(trace: Trace, call: EndRecord | undefined, cost: bigint): void {
    const stated = call?.kind === 'SETTLE' ? BigInt(call.cost) : 0n;
    if (stated !== cost) this.#fault('M17', trace.id, `the call says ${stated}, the ledger ${cost}`);
    const isServed = trace.served !== undefined;
    const isEstimate = !isServed && (trace.reported === undefined || trace.reported.isGuess);
    if (trace.crash === undefined && call?.kind === 'SETTLE' && call.estimated !== isEstimate)
      this.#fault('M4', trace.id, `is ${call.estimated ? '' : 'not '}marked as an estimate`);
    // What such an answer costs is known from its end alone.
    if (isServed) return;
    const isLost = trace.crash !== undefined && trace.departedLine > trace.crash.safeLine;
    if (trace.firstByte && trace.status === 200 && call?.kind !== 'SETTLE' && !isLost) {
      this.#fault('M4', trace.id, 'answered, and nothing was charged');
    }
  }

  #checkAttempts(trace: Trace): void {
    const known = trace.tries.map((_try, index) => this.#ledger.attempts.has(`${trace.id} ${index + 1}`));
    const count = known.filter(Boolean).length;
    // A departure whose write failed is written later all the same: only who lives can take it back.
    const most = trace.crash === undefined ? trace.departed : trace.tries.length;
    if (count > most) this.#fault('M5', trace.id, `${count} attempts in the ledger, ${most} were sent`);
    trace.tries.forEach(({ received }, index) => {
      if (received && !known[index] && trace.crash?.kind !== 'power') {
        this.#fault('M5', trace.id, `try ${index + 1} reached a vendor and is not in the ledger`);
      }
      if (!received && known[index] && trace.crash === undefined) {
        this.#fault('M5', trace.id, `try ${index + 1} reached no vendor and is in the ledger`);
      }
    });
  }

  /** The client bears one try at most, and the gateway what any other may cost: what was seen of it, else the prompt. */
  #checkBearers(trace: Trace, call: EndRecord): void {
    const isCharged = call.kind === 'SETTLE' && trace.served === undefined;
    const notes = trace.tries.map((_try, index) => this.#ledger.attempts.get(`${trace.id} ${index + 1}`));
    const clients = notes.filter((note) => note?.bearer === 'client').length;
    if (clients !== (isCharged ? 1 : 0)) this.#fault('M5', trace.id, `${clients} tries are borne by the client`);
    if (call.reason === 'crash') this.#checkCutOff(trace, notes);
    if (trace.crash !== undefined) return;
    let sum = 0n;
    trace.tries.forEach((attempt, index) => {
      const note = notes[index];
      if (note === undefined) return;
      const isClients = isCharged && attempt === trace.payer;
      const due = isClients ? 0n : shareOf(trace, attempt);
      const reported = BigInt(note.absorbed ?? 0);
      sum += reported;
      if ((note.bearer === 'client') !== isClients)
        this.#fault('M5', trace.id, `try ${index + 1} is borne by the ${note.bearer ?? 'missing'}`);
      if (reported !== due)
        this.#fault('M5', trace.id, `${reported} of try ${index + 1} are absorbed, it must be ${due}`);
      const bill = isClients || attempt.bill === undefined ? 0n : costOf(attempt.bill, attempt.list, one);
      if (reported < bill)
        this.#fault('M5', trace.id, `${reported} of try ${index + 1} are absorbed, its vendor bills ${bill}`);
    });
    const recorded = BigInt(call.absorbed ?? 0);
    if (recorded !== sum) this.#fault('M5', trace.id, `${recorded} are booked as absorbed, the tries have ${sum}`);
  }

  /** What became of tries that a crash has cut off no one can tell any more: the one that left last is the client's. */
  #checkCutOff(trace: Trace, notes: readonly (AttemptNote | undefined)[]): void {
    const left = notes.flatMap((note, index) => (note === undefined ? [] : [{ note, ...trace.tries[index]! }]));
    const last = left.reduce((latest, other) => (other.departure > latest.departure ? other : latest));
    if (last.note.bearer !== 'client')
      this.#fault('M5', trace.id, 'after the crash the client bears another try than the last that left');
  }

  /** Sums that hold at any moment. */
  #sums(): void {
    const { totals, accounts } = this.#ledger;
    const { balance: total, revenue, funding } = totals;
    if (total + revenue + funding !== 0n) this.#fault('M1', 'totals', 'the sides do not add up to zero');
    let sum = 0n;
    for (const { balance, held } of accounts.values()) sum += balance + held;
    if (sum !== total) this.#fault('M17', 'totals', `the balances are ${sum} together, the total says ${total}`);
  }

  #chain(): void {
    const sums = new Map<string, bigint>();
    let revenue = 0n;
    for (const row of this.#ledger.rows) {
      const before = sums.get(row.account) ?? 0n;
      if (before + row.amount !== row.balanceAfter)
        this.#fault('M1', `row ${row.seq}`, 'the balance after it is wrong');
      if (row.amount + row.revenue + row.funding !== 0n) this.#fault('M1', `row ${row.seq}`, 'its sides are off');
      if (row.revenue < 0n && row.kind !== 'REFUND') this.#fault('M9', `row ${row.seq}`, 'a charge below zero');
      sums.set(row.account, before + row.amount);
      revenue += row.revenue;
    }
    for (const [account, sum] of sums) {
      const { balance = 0n, held = 0n } = this.#ledger.accounts.get(account) ?? {};
      const stored = balance + held;
      if (stored !== sum) this.#fault('M1', account, `the rows add up to ${sum}, the balance is ${stored}`);
    }
    if (revenue !== this.#ledger.totals.revenue) this.#fault('M17', 'totals', 'the charges are not the rows’ sum');
  }

  /** M12 and M16 for money that comes in. */
  #credits(): void {
    const seen = new Set<string>();
    for (const { kind, grantId } of this.#ledger.rows) {
      if (kind !== 'CREDIT') continue;
      const { reference } = this.#ledger.grantsById.get(grantId!)!;
      if (seen.has(reference)) this.#fault('M12', reference, 'credited twice');
      seen.add(reference);
    }
    for (const reference of this.#oracle.acknowledged) {
      if (!seen.has(reference)) this.#fault('M16', reference, 'an acknowledged credit is lost');
    }
  }

  /** Nothing is drawn from a grant beyond what it brought, for another account, or after its end. */
  #grantBalances(): void {
    const drawn = new Map<string, bigint>();
    for (const { grantId, seq, amount, heldAt } of this.#ledger.grantBalances.draws) {
      drawn.set(grantId, (drawn.get(grantId) ?? 0n) + amount);
      const { account, grant } = this.#ledger.grantBalances.byGrant.get(grantId)!;
      const row = this.#ledger.rows[Number(seq) - 1]!;
      if (row.account !== account) this.#fault('M8', `row ${seq}`, 'paid by the grant of another account');
      if (heldAt >= grant.expiresAt) this.#fault('M8', `row ${seq}`, 'paid by a grant that had expired');
    }
    for (const [grantId, { grant }] of this.#ledger.grantBalances.byGrant) {
      const { amount, reference } = this.#ledger.grantsById.get(grantId)!;
      const lapsed = this.#oracle.lapsed.get(grantId) ?? 0n;
      const left = amount - (drawn.get(grantId) ?? 0n) - lapsed;
      if (left !== grant.remaining)
        this.#fault('M8', reference, `${grant.remaining} are left of it, it must be ${left}`);
    }
  }

  #readNewRows(): void {
    const { rows } = this.#ledger;
    for (; this.#read < rows.length; this.#read += 1) {
      const row = rows[this.#read]!;
      if (row.request === undefined) continue;
      const known = this.#rowsByRequest.get(row.request);
      if (known === undefined) this.#rowsByRequest.set(row.request, [row]);
      else known.push(row);
    }
  }

  #fault(rule: string, subject: string, what: string): void {
    this.#oracle.violations.add(rule, subject, what);
  }
}

const one = { numerator: 1n, denominator: 1n };

/** What a try that the client does not pay for may cost, at the list's price. */
export function shareOf({ inputTokens }: Pick<Trace, 'inputTokens'>, { list, received, state, reported }: Try): bigint {
  if (!received || state === 'refused') return 0n;
  return costOf(reported?.usage ?? { input: inputTokens }, list, one);
}
