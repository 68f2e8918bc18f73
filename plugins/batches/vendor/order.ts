/** Uploads the requests of a batch and orders it at the vendor: once, whatever is lost on the way. */
import { UpstreamError } from '../../../core/contract/upstream-failures.ts';
import type { VendorOrder, VendorState } from './api.ts';
import { lineIdOf } from './ids.ts';
import type { Next, Step } from './step.ts';
import type { VendorTools } from './tools.ts';
import { VendorRefusal } from './wire.ts';

const pageLines = 100;

/** A second upload costs nothing, but leaves a file at the vendor. */
export async function upload(tools: VendorTools, step: Step): Promise<Next> {
  const { batch, vendor, lease, stops, api, wire } = step;
  const { rows, settling } = tools;
  if (stops) return settling.withdraw(step);
  let fileId = vendor.sent === undefined ? undefined : await api.upload!.find(wire, batch.id);
  if (fileId === undefined) {
    await rows.change(batch.id, lease.token, { sent: 'now' });
    try {
      fileId = await api.upload!.send(wire, batch.id, requests(tools, step, '\n'));
    } catch (error) {
      if (isFinal(error)) return settling.giveUp(step, error.message);
      throw error;
    }
  }
  await rows.change(batch.id, lease.token, { state: 'ordering', fileId, sent: 'no' });
  return 'again';
}

const isFinal = (error: unknown): error is VendorRefusal => error instanceof VendorRefusal && error.isFinal;

async function* requests({ rows }: VendorTools, { batch, lease, api }: Step, end: string): AsyncGenerator<Uint8Array> {
  for (let after = 0; ; ) {
    const page = await rows.placed(batch.id, after, pageLines);
    for (const { number, request: body } of page) {
      await lease.keep();
      yield Buffer.from(api.lineOf({ id: lineIdOf(batch.id, number), body }, batch.endpoint) + end);
    }
    if (page.length < pageLines) return;
    after = page.at(-1)!.number;
  }
}

/** An order that may have been accepted is looked for, and given again only when the vendor does not have it. */
export async function order(tools: VendorTools, step: Step): Promise<Next> {
  const { batch, vendor, lease, stops } = step;
  if (vendor.sent !== undefined) return findAgain(tools, step, vendor.sent);
  if (stops) {
    await removeUpload(step);
    return tools.settling.withdraw(step);
  }
  await tools.rows.change(batch.id, lease.token, { sent: 'now' });
  try {
    return await send(tools, step);
  } catch (error) {
    if (isFinal(error)) {
      await removeUpload(step);
      return tools.settling.giveUp(step, error.message);
    }
    const isUnsent = error instanceof UpstreamError && error.phase === 'connect';
    if (isUnsent || (error instanceof VendorRefusal && error.isBusy))
      await tools.rows.change(batch.id, lease.token, { sent: 'no' });
    throw error;
  }
}

/**
 * Says as long as it sends that it does: another worker looks for the order a while after the last sign. An order that can say
 * so no more is broken off.
 */
async function send(tools: VendorTools, step: Step): Promise<Next> {
  const { batch, vendor, lease, api, wireUntil } = step;
  const { rows, host, options } = tools;
  const ending = new AbortController();
  const sign = () => rows.change(batch.id, lease.token, { sent: 'now' }).catch((error: unknown) => ending.abort(error));
  const signing = setInterval(() => void sign(), Math.min(lease.everyMs, options.settleMs / 4)).unref();
  try {
    const body = vendor.fileId ?? requests(tools, step, '');
    return await accepted(
      tools,
      step,
      await api.order(wireUntil(ending.signal), orderOf(step, host.clock.now()), body),
    );
  } finally {
    clearInterval(signing);
  }
}

/** It was sent, by this process or one that is gone, and no answer has come. */
async function findAgain(
  tools: VendorTools,
  step: Step,
  sent: { readonly at: number; readonly agoMs: number },
): Promise<Next> {
  const { batch, lease, api, wire } = step;
  const { rows, settling, options } = tools;
  if (sent.agoMs < options.settleMs) return options.settleMs - sent.agoMs;
  const found = await api.find(wire, orderOf(step, sent.at), (id) => rows.isKnown(id));
  if (found === 'undecided') return isOverdue(tools, step) ? settling.lose(step) : options.pollMs;
  if (found !== 'absent') return accepted(tools, step, found);
  await rows.change(batch.id, lease.token, { sent: 'no' });
  return 'again';
}

async function accepted({ rows, options }: VendorTools, { batch, lease }: Step, { id }: VendorState): Promise<Next> {
  await rows.change(batch.id, lease.token, { state: 'running', vendorId: id, ordered: true, sent: 'no' });
  return options.pollMs;
}

function orderOf({ batch, vendor: { model, lines } }: Step, sentAt: number): VendorOrder {
  return { name: batch.id, endpoint: batch.endpoint, model, lines, sentAt };
}

export async function removeUpload({ vendor, api, wire }: Step): Promise<void> {
  if (vendor.fileId !== undefined) await api.upload?.remove(wire, vendor.fileId).catch(() => {});
}

const overdueMs = 86_400_000;

/** After its batch has expired, a vendor that does not end it is given up a day later. */
export function isOverdue({ host }: VendorTools, { batch }: Pick<Step, 'batch'>): boolean {
  return host.clock.now() > batch.expiresAt + overdueMs;
}
