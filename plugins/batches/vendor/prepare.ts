/** Places the lines of a batch: takes the vendor's request of each through the chain, and sets money aside for it. */
import type { InputLine } from '../batch.ts';
import { requestIn } from '../input.ts';
import { placeLine } from './exchanges.ts';
import { lineIdOf } from './ids.ts';
import type { Next, Step } from './step.ts';
import type { VendorTools } from './tools.ts';

const pageLines = 100;

/** The lines that are placed so far. */
interface Size {
  lines: number;
  bytes: number;
}

export async function prepare(tools: VendorTools, step: Step): Promise<Next> {
  const { batch, lease, api } = step;
  const { rows } = tools;
  const { lines, bytes } = await rows.sizes(batch.id);
  // Their ids and frames come with them.
  const frame = api.lineOf({ id: lineIdOf(batch.id, 0), body: '' }, batch.endpoint).length;
  const size: Size = { lines, bytes: bytes + lines * frame };
  for await (const line of waitingLines(tools, step)) {
    if (lease.isStopping()) return 0;
    if ((await lease.keep()).stops) return 'again';
    const laterMs = await placeOne(tools, step, line, size);
    if (laterMs !== undefined) return laterMs;
  }
  const state = size.lines === 0 ? 'ended' : api.upload === undefined ? 'ordering' : 'uploading';
  await rows.change(batch.id, lease.token, { state, lines: size.lines, sent: 'no' });
  return 'again';
}

async function* waitingLines({ rows }: VendorTools, { batch }: Step): AsyncGenerator<InputLine> {
  for (let after = 0; ; ) {
    const page = await rows.waiting(batch.id, after, pageLines);
    yield* page;
    if (page.length < pageLines) return;
    after = page.at(-1)!.number;
  }
}

/** A line that is not placed is made as a call. Resolves with when to go on, where that is not now. */
async function placeOne(
  { host, rows, options, textOf }: VendorTools,
  { batch, vendor, lease, api }: Step,
  line: InputLine,
  size: Size,
): Promise<number | undefined> {
  const { number } = line;
  if (size.lines >= api.mostLines) return undefined;
  const request = requestIn((await textOf(batch, line)) ?? '', batch.endpoint);
  // Its call reports the fault.
  if ('code' in request) return undefined;
  let bytes = 0;
  const fits = (text: string) => {
    bytes = Buffer.byteLength(api.lineOf({ id: lineIdOf(batch.id, number), body: text }, batch.endpoint));
    return size.bytes + bytes + 1 <= api.mostBytes;
  };
  const placed = await placeLine(host, batch, vendor, request, {
    mostBytes: options.answerBytes,
    fits,
    place: (orm, placing) => rows.place(orm, batch.id, lease.token, { number, ...placing }),
  });
  if (placed === 'call') return undefined;
  if (placed === 'placed') {
    size.lines += 1;
    size.bytes += bytes + 1;
    return undefined;
  }
  if ('laterMs' in placed) return placed.laterMs;
  await rows.refuse(batch.id, lease.token, number, placed.refused);
  return undefined;
}
