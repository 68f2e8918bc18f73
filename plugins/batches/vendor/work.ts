/** Works on a vendor's batch: places its lines, orders it, follows the vendor, and reads the results. */
import { UpstreamError } from '../../../core/contract/upstream-failures.ts';
import { providers } from '../../common/domain/upstreams.ts';
import { whileRenewed } from '../../common/kit/jobs/leases.ts';
import { orderFields, orderSpans } from '../../common/wire/trace.ts';
import type { Batch } from '../batch.ts';
import { apiOf, wireTargetOf } from './choice.ts';
import { isOverdue, order, removeUpload, upload } from './order.ts';
import { prepare } from './prepare.ts';
import { readResults } from './results.ts';
import type { VendorBatch } from './rows.ts';
import type { Held, Lease, Next, Step } from './step.ts';
import type { VendorTools } from './tools.ts';
import { VendorRefusal, type WireCall, type Wires } from './wire.ts';

const faultPauseMs = 5_000;
const mostPauseMs = 60_000;

/** `isPreparing`: which lines are made as calls is not decided. */
interface VendorDue {
  readonly ms: number;
  readonly isPreparing: boolean;
}

export class VendorWork {
  readonly #tools: VendorTools;
  readonly #wires: Wires;

  constructor(tools: VendorTools, wires: Wires) {
    this.#tools = tools;
    this.#wires = wires;
  }

  /** Goes as far as it can. Resolves with when it is due again; undefined: no vendor's batch is open. */
  async run(batch: Batch, lease: Lease): Promise<VendorDue | undefined> {
    for (;;) {
      const renewed = await lease.renew();
      const vendor = await this.#tools.rows.find(batch.id);
      if (vendor === undefined || vendor.state === 'ended') return undefined;
      const isPreparing = vendor.state === 'preparing';
      if (lease.isStopping()) return { ms: 0, isPreparing };
      const next = await this.#next({ ...renewed, batch, vendor, lease });
      if (next !== 'again') return { ms: next, isPreparing };
    }
  }

  async #next(held: Held): Promise<Next> {
    const { host, settling } = this.#tools;
    const { batch, stops } = held;
    const vendor = held.vendor.credential === undefined ? await this.#withKey(held) : held.vendor;
    if (typeof vendor === 'number') return stops ? settling.withdraw(held) : vendor;
    const api = apiOf(vendor.protocol);
    const target = api && wireTargetOf(host, batch, vendor, api);
    if (api === undefined || target === undefined) return this.#withoutVendor(held);
    try {
      const onCall = host.find(orderSpans) && ((call: WireCall) => this.#addSpan(batch, vendor, call));
      const wireUntil = (signal: AbortSignal) => this.#wires.to(target, { signal, onCall });
      return await this.#holding({ ...held, vendor, api, wire: this.#wires.to(target, { onCall }), wireUntil });
    } catch (error) {
      if (!(error instanceof VendorRefusal || error instanceof UpstreamError)) throw error;
      host.log.info(
        { ...orderFields(batch), error, batch: batch.id, state: vendor.state },
        "a vendor's batch could not be worked on",
      );
      const requestedMs = error instanceof VendorRefusal ? error.retryAfterMs : undefined;
      return Math.min(Math.max(requestedMs ?? Math.min(faultPauseMs, this.#tools.options.pollMs), 50), mostPauseMs);
    }
  }

  #addSpan(batch: Batch, { provider, model, protocol }: VendorBatch, call: WireCall): void {
    const { operation, startedAt, durationMs, status } = call;
    const result = status !== undefined && status < 300 ? 'answered' : status === undefined ? 'unknown' : 'refused';
    const attempt = { number: 1, provider, model, protocol, result, status, startedAt, durationMs } as const;
    this.#tools.host.find(orderSpans)?.add(batch, { operation, isGeneration: false, attempt });
  }

  /** A vendor may take longer than the lease. */
  #holding(step: Step): Promise<Next> {
    const { lease } = step;
    return whileRenewed(
      lease.everyMs,
      () => void lease.renew().catch(() => {}),
      () => this.#step(step),
    );
  }

  #step(step: Step): Promise<Next> {
    const { vendor, stops } = step;
    switch (vendor.state) {
      case 'preparing':
        return stops ? this.#tools.settling.withdraw(step) : prepare(this.#tools, step);
      case 'uploading':
        return upload(this.#tools, step);
      case 'ordering':
        return order(this.#tools, step);
      case 'running':
        return this.#follow(step);
      default:
        return this.#read(step);
    }
  }

  /** All requests of the order go by one key. Resolves with a wait while none is usable. */
  async #withKey({ batch, vendor, lease }: Held): Promise<VendorBatch | number> {
    const known = this.#tools.host.find(providers);
    // Without its vendor, it needs no key.
    if (known?.find(vendor.provider) === undefined) return vendor;
    const taken = known.acquireKey(vendor.provider, vendor.model);
    if (!('key' in taken)) return Math.max(taken.retryAfterMs, faultPauseMs);
    const { credential } = taken;
    await this.#tools.rows.change(batch.id, lease.token, { credential });
    return { ...vendor, credential };
  }

  /** The vendor, or its key, is not configured any more. */
  async #withoutVendor(held: Held): Promise<Next> {
    const { vendor } = held;
    const isSent = vendor.vendorId !== undefined || (vendor.state === 'ordering' && vendor.sent !== undefined);
    if (!isSent) return this.#tools.settling.giveUp(held, 'its vendor is not configured');
    return isOverdue(this.#tools, held) ? this.#tools.settling.lose(held) : mostPauseMs;
  }

  async #follow(step: Step): Promise<Next> {
    const { batch, vendor, lease, stops, api, wire } = step;
    const { rows, settling, options } = this.#tools;
    if (stops && !vendor.cancelSent) await this.#cancel(step);
    const { end } = await api.get(wire, vendor.vendorId!).catch((error: unknown) => {
      if (isOverdue(this.#tools, step)) return { end: undefined };
      throw error;
    });
    if (end === undefined) return isOverdue(this.#tools, step) ? settling.lose(step) : options.pollMs;
    if ('refused' in end) {
      await removeUpload(step);
      return settling.giveUp(step, `the vendor refused it: ${end.refused}`);
    }
    await rows.change(batch.id, lease.token, { state: 'reading', results: end });
    return 'again';
  }

  async #cancel({ batch, vendor, lease, api, wire }: Step): Promise<void> {
    await api.cancel(wire, vendor.vendorId!).catch((error: unknown) => {
      // One that has ended meanwhile cannot be cancelled.
      if (!(error instanceof VendorRefusal && error.isFinal)) throw error;
    });
    await this.#tools.rows.change(batch.id, lease.token, { cancelSent: true });
  }

  async #read(step: Step): Promise<Next> {
    const { batch, vendor, lease, cancelled, api, wire } = step;
    const { rows, settling, host } = this.#tools;
    if (!(await readResults(this.#tools, step))) return 0;
    const { ended } = vendor.results!;
    const missed = cancelled ? 'cancelled' : ended === 'cancelled' ? 'expired' : ended;
    await settling.rest(step, (line) =>
      missed === 'completed' ? settling.unknown(step, line) : settling.missed(batch, line, missed),
    );
    await removeUpload(step);
    await api.forget(wire, vendor.vendorId!, vendor.results).catch((error: unknown) => {
      host.log.info({ ...orderFields(batch), error, batch: batch.id }, 'a vendor keeps what it has of a batch');
    });
    await rows.change(batch.id, lease.token, { state: 'ended' });
    return 'again';
  }
}
