/** One image request of the vendor: painted after the ordered while, and billed whether or not somebody still waits for it. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Usage } from '../../../core/usage.ts';
import { bearerKey } from '../chat-faults.ts';
import { Fault, orderedFault } from '../fault.ts';
import { parse, readBody, requestIdOf } from '../incoming.ts';
import { cutOff, untilClosed, wait } from '../play.ts';
import { sendJson, type Vendor } from '../run.ts';
import { arkPictures } from './ark-images.ts';
import { seedOf } from './canvas.ts';
import type { Picture, PictureAsk, PictureDialect, Words } from './dialect.ts';
import { formOf } from './form.ts';
import { imageLink, pictureOf } from './links.ts';
import { openaiPictures } from './openai-images.ts';
import { streamPicture } from './picture-stream.ts';
import { xaiPictures } from './xai-images.ts';

export type PictureProtocol = 'openai-images' | 'xai-images' | 'ark-images';
const dialects: Record<PictureProtocol, PictureDialect> = {
  'openai-images': openaiPictures,
  'xai-images': xaiPictures,
  'ark-images': arkPictures,
};

/** Never rejects: faults are answered in the protocol's words. */
export async function servePictures(
  vendor: Vendor,
  protocol: PictureProtocol,
  edits: boolean,
  request: IncomingMessage,
  answer: ServerResponse,
): Promise<void> {
  const dialect = dialects[protocol];
  await answering(vendor, dialect, answer, async (id) => {
    const bytes = await readBody(request);
    checkKey(vendor, request);
    const type = request.headers['content-type'] ?? '';
    const isForm = edits && dialect.takesForms === true && type.startsWith('multipart/form-data');
    const ask = dialect.read(isForm ? await formOf(bytes, type) : parse(bytes), edits);
    await paint({ vendor, dialect, ask, id, origin: originOf(request), requestId: requestIdOf(request) }, answer);
  });
}

/** Does the work; what it throws is answered in the dialect's words. */
export async function answering(
  vendor: Vendor,
  words: Words,
  answer: ServerResponse,
  work: (id: string) => Promise<void>,
): Promise<void> {
  const id = vendor.nextId();
  try {
    await work(id);
  } catch (error) {
    if (answer.headersSent || answer.destroyed) return void answer.destroy();
    const fault = error instanceof Fault ? error : new Fault(500, 'The sandbox failed.');
    const { body, headers } = words.fault(fault, id);
    sendJson(answer, fault.status, { 'x-request-id': `req_${id}`, ...headers }, body);
  }
}

/** Throws a 401 fault. */
export function checkKey(vendor: Vendor, { headers }: IncomingMessage): void {
  if (vendor.key !== undefined && bearerKey(headers.authorization) !== vendor.key)
    throw new Fault(401, 'The sandbox does not know this API key.');
}

/** Where its files are, as the client has reached it. */
export function originOf({ headers }: IncomingMessage): string {
  return `http://${headers.host ?? '127.0.0.1'}`;
}

export interface Painting {
  readonly vendor: Vendor;
  readonly dialect: Pick<PictureDialect, 'usage' | 'word' | 'moderated' | 'streaming'>;
  readonly ask: PictureAsk;
  readonly id: string;
  readonly origin: string;
  readonly requestId: string | undefined;
}

/** Painting costs the same when nobody waits for the pictures any more. Throws the faults that are ordered. */
export async function paint(painting: Painting, answer: ServerResponse): Promise<void> {
  const { vendor, dialect, ask, id } = painting;
  const { directives } = ask;
  const startedAt = vendor.now();
  vendor.bill.opened();
  answer.once('close', () => vendor.bill.closed());
  const delayMs = directives.takes ?? directives.delay ?? vendor.firstByteMs;
  if (delayMs > 0) await wait(answer, delayMs);
  if (directives.status !== undefined) throw orderedFault(directives.status, directives.retry_after);
  const isStalled = directives.stall !== undefined && ask.previews === undefined;
  if (directives.stuck || isStalled) return await untilClosed(answer);
  const headers = { 'x-request-id': `req_${id}` };
  if (directives.moderated || directives.refuse) {
    const { status, body } = dialect.moderated(ask);
    return sendJson(answer, status, headers, jsonOf(body));
  }
  const pictures = picturesOf(painting);
  const created = Math.floor(startedAt / 1000);
  if (ask.previews !== undefined && dialect.streaming !== undefined) {
    const painted = { ask, picture: pictures[0], created };
    const { usage, outcome } = await streamPicture(answer, dialect.streaming, painted, vendor.chunkMs);
    if (directives.first_error === undefined) enter(painting, usage, startedAt, outcome);
    return;
  }
  charge(painting, pictures, startedAt, answer);
  if (answer.destroyed) return;
  if (directives.error_after !== undefined) throw orderedFault(directives.error_after, directives.retry_after);
  const body = jsonOf(dialect.word(ask, pictures, created));
  if (directives.cut_after === undefined) return sendJson(answer, 200, headers, body);
  answer.writeHead(200, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) });
  answer.write(body.slice(0, body.length >> 1));
  await cutOff(answer);
}

function jsonOf(body: object): string {
  return `${JSON.stringify(body, null, 2)}\n`;
}

/** `partial`: all but the first have failed; `twice`: each stands there twice, and is charged once. */
function picturesOf({ vendor, ask, origin }: Painting): Picture[] {
  const { directives } = ask;
  if (directives.empty || directives.failed) return directives.failed ? [undefined] : [];
  const pictures = Array.from({ length: ask.count }, (_, index): Picture => {
    if (directives.partial && index > 0) return undefined;
    const seed = seedOf(ask.model, ask.prompt, index);
    if (!ask.asBytes) return { url: imageLink(origin, seed, ask.size, vendor.now(), directives.link_lasts) };
    return { base64: pictureOf(seed, ask.size).bytes.toString('base64') };
  });
  return directives.twice ? pictures.flatMap((picture) => [picture, picture]) : pictures;
}

function charge(painting: Painting, pictures: readonly Picture[], startedAt: number, answer: ServerResponse): void {
  const { vendor, dialect, ask } = painting;
  const { directives } = ask;
  if (directives.failed) return;
  const left = answer.destroyed;
  const made = directives.empty ? ask.count : Math.min(ask.count, pictures.filter(Boolean).length);
  const outcome = left || directives.cut_after !== undefined ? 'cut' : 'complete';
  const entry = enter(painting, dialect.usage(ask, made), startedAt, outcome);
  if (left) return;
  answer.once('close', () => {
    if (!answer.writableFinished) vendor.bill.turnedOutCut(entry);
  });
}

function enter({ vendor, ask, id, requestId }: Painting, usage: Usage, at: number, outcome: 'complete' | 'cut') {
  const common = { protocol: 'images', model: ask.model, requestId, answerId: id } as const;
  return vendor.bill.add({ ...common, at, endedAt: vendor.now(), usage, outcome });
}
