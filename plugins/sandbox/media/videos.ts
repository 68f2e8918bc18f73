/**
 * The vendor's video tasks: each takes the directed time, is billed once when it succeeds, and can be polled any number of
 * times.
 */

import type { IncomingMessage, ServerResponse } from 'node:http';
import { Fault, orderedFault } from '../fault.ts';
import { wait } from '../paced-stream.ts';
import { parse, readBody, requestIdOf } from '../request-body.ts';
import { sendJson, type Vendor } from '../vendor-state.ts';
import { seedOf } from './canvas.ts';
import { videoLink } from './links.ts';
import { answering, checkKey, originOf } from './pictures.ts';
import { dialects, type Job, shareOf, stateOf, type VideoProtocol } from './video-jobs.ts';

/** Without a directive. */
const usualWorkMs = 1_000;

/** Never rejects: faults are answered in the protocol's own error form. `id` is of an existing task. */
export async function serveVideos(
  vendor: Vendor,
  protocol: VideoProtocol,
  id: string | undefined,
  request: IncomingMessage,
  answer: ServerResponse,
): Promise<void> {
  const dialect = dialects[protocol];
  await answering(vendor, dialect, answer, async (answerId) => {
    const bytes = await readBody(request);
    checkKey(vendor, request);
    if (id === undefined) return await create(vendor, protocol, bytes, answerId, request, answer);
    const job = vendor.videos.find(protocol, id);
    if (job === undefined) throw new Fault(404, 'The sandbox has no task of this id.');
    if (request.method === 'DELETE') cancel(vendor, job, answer);
    else sendTask(vendor, job, request, answer);
  });
}

async function create(
  vendor: Vendor,
  protocol: VideoProtocol,
  bytes: Buffer,
  answerId: string,
  request: IncomingMessage,
  answer: ServerResponse,
): Promise<void> {
  const dialect = dialects[protocol];
  const params = dialect.decode(parse(bytes));
  const { directives } = params;
  const delayMs = directives.delay ?? vendor.firstByteMs;
  if (delayMs > 0) await wait(answer, delayMs);
  if (directives.status !== undefined) throw orderedFault(directives.status, directives.retry_after);
  const id = `${dialect.idPrefix}${answerId}`;
  const workMs = directives.takes ?? usualWorkMs;
  const requestId = requestIdOf(request);
  const fresh = { polls: 0, successes: 0, isCancelled: false };
  vendor.videos.add({ id, params, createdAtMs: vendor.now(), protocol, workMs, requestId, ...fresh });
  if (directives.error_after !== undefined) throw orderedFault(directives.error_after, directives.retry_after);
  if (directives.cut_after !== undefined) return void answer.destroy();
  sendJson(answer, 200, {}, JSON.stringify(dialect.created(id)));
}

function sendTask(vendor: Vendor, job: Job, request: IncomingMessage, answer: ServerResponse): void {
  const { directives } = job.params;
  const now = vendor.now();
  vendor.videos.settle(now);
  job.polls++;
  if (job.polls <= (directives.poll_404 ?? 0)) throw orderedFault(404);
  if (job.polls <= (directives.poll_500 ?? 0)) throw orderedFault(500);
  let state = stateOf(job, now);
  if (state === 'succeeded') {
    job.successes++;
    // Reports done, then running, then done again at another URL.
    if (directives.twice && job.successes === 2) state = 'running';
  }
  const seed = seedOf(job.params.model, job.params.prompt, directives.twice ? job.successes : 1);
  const url = videoLink(originOf(request), seed, job.params.size, job.params.seconds, now, directives.link_lasts);
  const { status, body } = dialects[job.protocol].encodeTask(job, state, { url, share: shareOf(job, now), now });
  if (status === 202 && directives.empty) return void answer.writeHead(202).end();
  sendJson(answer, status, {}, JSON.stringify(body));
}

/** Only queued tasks can be cancelled. */
function cancel(vendor: Vendor, job: Job, answer: ServerResponse): void {
  const state = stateOf(job, vendor.now());
  if (state === 'running')
    throw new Fault(400, 'A running task cannot be cancelled.', { code: 'InvalidAction.RunningTaskDeletion' });
  if (state === 'queued') job.isCancelled = true;
  vendor.videos.settle(vendor.now());
  sendJson(answer, 200, {}, '{}');
}
