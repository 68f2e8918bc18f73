/** Ends the lines of a vendor's batch with their money: each in one transaction with its row, once. */
import type { Host } from '../../../core/contract/contract.ts';
import type { Database } from '../../common/domain/database.ts';
import { type AuthorizationEnd, authorizations } from '../../common/domain/ledger.ts';
import { orderFields } from '../../common/wire/trace.ts';
import type { Batch, LineAnswer } from '../batch.ts';
import { refused, unknownOutcome } from '../perform.ts';
import { type Delivered, sentAttempt } from './exchanges.ts';
import type { PlacedLine, VendorRows } from './rows.ts';
import type { Held, Next } from './step.ts';

interface SettleTools {
  readonly host: Host;
  readonly store: Database;
  readonly rows: VendorRows;
}

const pageLines = 100;

type Ending = Pick<AuthorizationEnd, 'report' | 'reason' | 'attempts'>;
const nothing: Ending = { report: undefined, reason: 'not_sent', attempts: [] };

export class Settling {
  readonly #tools: SettleTools;

  constructor(tools: SettleTools) {
    this.#tools = tools;
  }

  /** The vendor's answer: charged by its usage. */
  delivered(batch: Batch, line: PlacedLine, { answer, report, attempts }: Delivered): Promise<void> {
    const reason = attempts.at(-1)?.result === 'unknown' ? 'unknown' : 'refused';
    return this.#end(batch, line, answer, { report, reason, attempts });
  }

  /** The vendor has not made it. */
  missed(batch: Batch, line: PlacedLine, result: 'cancelled' | 'expired'): Promise<void> {
    const { requestId } = line;
    const answer = { result, status: undefined, requestId, answer: undefined, cost: undefined };
    return this.#end(batch, line, answer, { ...nothing, reason: result });
  }

  /** The vendor may have made it: the client pays nothing, and the estimate is written off. */
  unknown({ batch, vendor }: Pick<Held, 'batch' | 'vendor'>, line: PlacedLine): Promise<void> {
    const answer = { ...refused(batch, unknownOutcome()), requestId: line.requestId };
    return this.#end(batch, line, answer, { report: undefined, reason: 'unknown', attempts: [sentAttempt(vendor)] });
  }

  /** Each line that is placed. */
  async rest({ batch, lease }: Held, work: (line: PlacedLine) => Promise<void>): Promise<void> {
    for (let after = 0; ; ) {
      const page = await this.#tools.rows.placed(batch.id, after, pageLines);
      for (const line of page) {
        await lease.keep();
        await work(line);
      }
      if (page.length < pageLines) return;
      after = page.at(-1)!.number;
    }
  }

  /** Nothing was sent, and nothing will be: the lines have their end. */
  async withdraw(held: Held): Promise<Next> {
    const result = held.cancelled ? 'cancelled' : 'expired';
    await this.rest(held, (line) => this.missed(held.batch, line, result));
    return this.#closed(held);
  }

  /** No line was made: each becomes a call. */
  async giveUp(held: Held, why: string): Promise<Next> {
    const { batch } = held;
    const { log } = this.#tools.host;
    log.warn(
      { ...orderFields(batch), batch: batch.id, why },
      "a batch cannot be made by its vendor's batch API: its lines become calls",
    );
    await this.rest(held, (line) => this.#giveBack(batch, line));
    return this.#closed(held);
  }

  /** The vendor may have made all lines, and does not say so. */
  async lose(held: Held): Promise<Next> {
    this.#tools.host.log.error(
      { ...orderFields(held.batch), batch: held.batch.id },
      'the outcome of a batch at its vendor is not known',
    );
    await this.rest(held, (line) => this.unknown(held, line));
    return this.#closed(held);
  }

  async #closed({ batch, lease }: Held): Promise<Next> {
    await this.#tools.rows.change(batch.id, lease.token, { state: 'ended' });
    return 'again';
  }

  async #giveBack({ id, accountId }: Batch, { number, requestId }: PlacedLine): Promise<void> {
    const { host, rows, store } = this.#tools;
    const ended = await host
      .get(authorizations)
      .end(accountId, requestId, async (orm) => ((await rows.giveBack(orm, id, number)) ? nothing : undefined));
    if (!ended) await rows.giveBack(store.orm, id, number);
  }

  async #end(batch: Batch, line: PlacedLine, answer: LineAnswer, ending: Ending): Promise<void> {
    const { id, accountId } = batch;
    const { host, rows, store } = this.#tools;
    const { number, requestId } = line;
    const ended = await host.get(authorizations).end(accountId, requestId, async (orm) => {
      if (!(await rows.finish(orm, id, number, answer))) return undefined;
      return { ...ending, charged: (transaction, cost) => rows.setCost(transaction, id, number, cost) };
    });
    // Without an authorization there is no charge, and the line must not stay open for ever.
    if (!ended && (await rows.finish(store.orm, id, number, answer)))
      host.log.error(
        { ...orderFields(batch), request_id: requestId, batch: id, line: number },
        'a line of a batch had no authorization',
      );
  }
}
