/** Reads a vendor's results line by line, and delivers those that have no end yet. */
import { isObject, tryParse } from '../../../core/json/json.ts';
import { type Batch, modelInEndpoint } from '../batch.ts';
import { type LineRequest, requestIn } from '../input.ts';
import type { VendorResult } from './api.ts';
import { deliverLine } from './exchanges.ts';
import { numberIn } from './ids.ts';
import type { PlacedLine, VendorBatch } from './rows.ts';
import type { Step } from './step.ts';
import type { VendorTools } from './tools.ts';

/** false: this process stops, and another goes on. Throws where the rest has to be read again. */
export async function readResults(tools: VendorTools, step: Step): Promise<boolean> {
  const { batch, vendor, lease, api, wire } = step;
  const open = await tools.rows.numbers(batch.id);
  if (open.size === 0) return true;
  const running = new Set<Promise<void>>();
  let fault: unknown;
  for await (const result of api.results(wire, vendor.results!)) {
    const number = numberIn(batch.id, result.id);
    // The first result of a line counts.
    if (number === undefined || !open.delete(number)) continue;
    await lease.keep();
    const work: Promise<void> = deliver(tools, step, number, result)
      .catch((error: unknown) => {
        fault ??= error;
      })
      .finally(() => running.delete(work));
    running.add(work);
    if (running.size >= tools.options.lines) await Promise.race(running);
    if (fault !== undefined || lease.isStopping()) break;
  }
  await Promise.all(running);
  if (fault !== undefined) throw fault;
  return !lease.isStopping();
}

async function deliver(
  { host, rows, settling, options, textOf }: VendorTools,
  { batch, vendor, cancelled }: Step,
  number: number,
  result: VendorResult,
): Promise<void> {
  const line = await rows.line(batch.id, number);
  if (line === undefined) return;
  // A vendor's batch is cancelled also when ours has expired.
  if ('missed' in result) return settling.missed(batch, line, cancelled ? result.missed : 'expired');
  const request = requestOfLine(batch, vendor, line, await textOf(batch, line));
  if (request === undefined) return settling.unknown({ batch, vendor }, line);
  const given = { id: line.requestId, request, status: result.status, body: result.body, kept: line.kept };
  await settling.delivered(batch, line, await deliverLine(host, batch, vendor, given, options.answerBytes));
}

/** A client that deletes its input while the vendor works still gets its answers, and pays for them. */
function requestOfLine(
  { endpoint }: Batch,
  { asked: requested }: VendorBatch,
  { customId, request }: PlacedLine,
  text: string | undefined,
): LineRequest | undefined {
  const found = text === undefined ? undefined : requestIn(text, endpoint);
  if (found !== undefined && 'body' in found) return found;
  const body = tryParse(request);
  if (!isObject(body)) return undefined;
  return { customId, body: modelInEndpoint(endpoint) === undefined ? { ...body, model: requested } : body };
}
