/** The vendor's own bill, entry by entry: it shows the newest thousand, so that it is read again and again. */
import type { BillEntry, BillReport } from '../../plugins/sandbox/bill.ts';

const everyMs = 20_000;

export class VendorBill {
  readonly entries = new Map<number, BillEntry>();
  readonly #origin: string;
  readonly #timer: NodeJS.Timeout;

  constructor(origin: string) {
    this.#origin = origin;
    this.#timer = setInterval(() => void this.#read(), everyMs);
  }

  /** Nothing runs any more: resolves with how many of its entries were never seen. */
  async close(): Promise<number> {
    clearInterval(this.#timer);
    const { requests } = await this.#read();
    return requests - this.entries.size;
  }

  async #read(): Promise<BillReport> {
    const report = (await (await fetch(`${this.#origin}/bill`)).json()) as BillReport;
    for (const entry of report.recent) this.entries.set(entry.number, entry);
    return report;
  }
}
