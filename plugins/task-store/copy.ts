/** What a vendor made becomes the gateway's own: copied before its address expires, then charged. */
import { GatewayError } from '../../core/errors.ts';
import type { MadeFile, Step } from './contract.ts';
import { complete, giveUp, withLast } from './ends.ts';
import type { From, Kept, StoredTask, TaskError, To, VendorFile } from './rows.ts';
import { targetOf } from './targets.ts';
import { backOff, type Hand, type Tools } from './tools.ts';

const mostTries = 8;
const pauseMs = 500;
const lost: TaskError = { code: 'result_lost', message: 'What was made could not be kept. Nothing is charged.' };

type Done = Extract<Step, { state: 'done' }>;

/**
 * Results that came as bytes are kept at once, as no row could hold them; then the task is `copying`. Where somebody looks
 * on, the same worker goes on.
 */
export async function makeFilesKept(
  tools: Tools,
  task: StoredTask,
  from: From,
  { files: made, made: report }: Done,
  hand: Hand,
): Promise<void> {
  const { rows } = tools;
  const vendorFiles: VendorFile[] = [];
  for (const [number, file] of made.entries()) {
    const placed = await placeOf(tools, task, file, number, hand);
    if (placed === undefined) return fail(tools, { ...task, made: report }, from);
    vendorFiles.push(placed);
  }
  const changes = { attempts: task.attempts, made: report, vendorFiles };
  const isWaitedFor = hand.live !== undefined;
  const next: To = { state: 'copying', dueMs: 0 };
  const to: To = isWaitedFor ? { ...next, keepLease: true } : next;
  const moved = await rows.move(task.id, from, to, changes);
  if (moved && isWaitedFor) await copy(tools, { ...task, ...changes, state: 'copying' }, hand);
}

async function placeOf(
  tools: Tools,
  task: StoredTask,
  file: MadeFile,
  number: number,
  { signal }: Hand,
): Promise<VendorFile | undefined> {
  const kind = kindOf(file, task);
  if ('url' in file) return { url: file.url, kind };
  const content = Buffer.from(file.base64, 'base64');
  const owner = { accountId: task.accountId, taskId: task.id, number };
  for (let tries = 0; tries < mostTries; tries += 1) {
    try {
      const { id, mediaType } = await tools.files.keep(content, kind, owner, signal);
      return { kept: { id, mediaType } };
    } catch (error) {
      tools.log.warn({ error, task: task.id }, 'a result could not be kept');
      if (isHopeless(error) || signal.aborted) return undefined;
      await new Promise((resolve) => setTimeout(resolve, pauseMs * 2 ** tries));
    }
  }
  return undefined;
}

/** A still of a video is an image. */
function kindOf({ mediaType }: MadeFile, { kind }: StoredTask): StoredTask['kind'] {
  if (mediaType?.startsWith('image/') === true) return 'image';
  return mediaType?.startsWith('video/') === true ? 'video' : kind;
}

/** Copies what still lies at the vendor's, and ends the task. */
export async function copy(tools: Tools, task: StoredTask, hand: Hand): Promise<void> {
  const from: From = { states: ['copying'], by: { lease: hand.lease } };
  try {
    const results: Kept[] = [];
    for (const [number, file] of task.vendorFiles.entries()) {
      results.push('kept' in file ? file.kept : await fetched(tools, task, file, number, hand));
    }
    await complete(tools, task, from, results);
  } catch (error) {
    if (hand.signal.aborted) return;
    tools.log.warn({ error, task: task.id, tries: task.tries }, 'a result could not be copied');
    if (isHopeless(error) || task.tries + 1 >= mostTries) return fail(tools, task, from);
    const { rows, timing, random } = tools;
    const dueMs = backOff(task.tries, timing.retryMs, timing.longestRetryMs, random);
    await rows.move(task.id, from, { state: 'copying', dueMs }, { tries: task.tries + 1 });
  }
}

async function fetched(
  tools: Tools,
  task: StoredTask,
  { url, kind }: Extract<VendorFile, { url: string }>,
  number: number,
  { signal }: Hand,
): Promise<Kept> {
  const { catalog, providers, adapters, files } = tools;
  const last = task.attempts.at(-1);
  const vendor = last && targetOf(last, catalog.find(task.model), providers, adapters)?.target.baseUrl;
  const owner = { accountId: task.accountId, taskId: task.id, number };
  const content = vendor === undefined ? { url } : { url, vendor };
  const { id, mediaType } = await files.keep(content, kind, owner, signal);
  return { id, mediaType };
}

function isHopeless(error: unknown): boolean {
  return error instanceof GatewayError && error.shouldRetry === false;
}

/** The vendor has charged, the client has nothing. */
async function fail(tools: Tools, task: StoredTask, from: From): Promise<void> {
  const { usage, estimated } = task.made!;
  const attempts = withLast(task.attempts, { consumed: { usage, estimated } });
  await giveUp(tools, task, from, { state: 'failed', error: lost, attempts });
  await tools.files.removeOfTask(task.accountId, task.id);
}
