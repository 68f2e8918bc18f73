/** Answers one image request of the vendor: painted after the directed delay, and billed even if the client disconnects. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Usage } from '../../common/domain/usage.ts';
import { Fault, orderedFault } from '../fault.ts';
import { cutOff, untilClosed, wait } from '../paced-stream.ts';
import { bearerKey } from '../protocols/chat-faults.ts';
import { parse, readBody, requestIdOf } from '../request-body.ts';
import { sendJson, type Vendor } from '../vendor-state.ts';
import { arkPictures } from './ark-images.ts';
import { seedOf } from './canvas.ts';
import type { ErrorEncoder, ImageParams, Picture, PictureDialect } from './dialect.ts';
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

/** Never rejects: faults are answered in the protocol's own error form. */
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
    const params = dialect.decode(isForm ? await formOf(bytes, type) : parse(bytes), edits);
    await paint({ vendor, dialect, params, id, origin: originOf(request), requestId: requestIdOf(request) }, answer);
  });
}

/** Does the work and answers its errors in the dialect's form. */
export async function answering(
  vendor: Vendor,
  errors: ErrorEncoder,
  answer: ServerResponse,
  work: (id: string) => Promise<void>,
): Promise<void> {
  const id = vendor.nextId();
  try {
    await work(id);
  } catch (error) {
    if (answer.headersSent || answer.destroyed) return void answer.destroy();
    const fault = error instanceof Fault ? error : new Fault(500, 'The sandbox failed.');
    const { body, headers } = errors.fault(fault, id);
    sendJson(answer, fault.status, { 'x-request-id': `req_${id}`, ...headers }, body);
  }
}

/** Throws a 401 fault. */
export function checkKey(vendor: Vendor, { headers }: IncomingMessage): void {
  if (vendor.key !== undefined && bearerKey(headers.authorization) !== vendor.key)
    throw new Fault(401, 'The sandbox does not know this API key.');
}

/** Base URL of its files, as the client reaches it. */
export function originOf({ headers }: IncomingMessage): string {
  return `http://${headers.host ?? '127.0.0.1'}`;
}

export interface Painting {
  readonly vendor: Vendor;
  readonly dialect: Pick<PictureDialect, 'usage' | 'encode' | 'moderated' | 'streaming'>;
  readonly params: ImageParams;
  readonly id: string;
  readonly origin: string;
  readonly requestId: string | undefined;
  /** The answer is the only event of a stream. */
  readonly isStream?: boolean;
}

/** Painting costs the same after a disconnect. Throws directed faults. */
export async function paint(painting: Painting, answer: ServerResponse): Promise<void> {
  const { vendor, dialect, params, id } = painting;
  const { directives } = params;
  const startedAt = vendor.now();
  vendor.bill.opened();
  answer.once('close', () => vendor.bill.closed());
  const delayMs = directives.takes ?? directives.delay ?? vendor.firstByteMs;
  if (delayMs > 0) await wait(answer, delayMs);
  if (directives.status !== undefined) throw orderedFault(directives.status, directives.retry_after);
  const isStalled = directives.stall !== undefined && params.previews === undefined;
  if (directives.stuck || isStalled) return await untilClosed(answer);
  const headers = { 'x-request-id': `req_${id}` };
  if (directives.moderated || directives.refuse) {
    const { status, body } = dialect.moderated(params);
    return sendJson(answer, status, headers, jsonOf(body));
  }
  const pictures = picturesOf(painting);
  const created = Math.floor(startedAt / 1000);
  if (params.previews !== undefined && dialect.streaming !== undefined) {
    const painted = { params, picture: pictures[0], created };
    const { usage, outcome } = await streamPicture(answer, dialect.streaming, painted, vendor.chunkMs);
    if (directives.first_error === undefined) enter(painting, usage, startedAt, outcome);
    return;
  }
  charge(painting, pictures, startedAt, answer);
  if (answer.destroyed) return;
  if (directives.error_after !== undefined) throw orderedFault(directives.error_after, directives.retry_after);
  await sendPictures(painting, dialect.encode(params, pictures, created), headers, answer);
}

async function sendPictures(
  { params: { directives }, isStream = false }: Painting,
  made: object,
  headers: Record<string, string>,
  answer: ServerResponse,
): Promise<void> {
  const body = isStream ? `data: ${JSON.stringify(made)}\r\n\r\n` : jsonOf(made);
  const type = isStream ? 'text/event-stream' : 'application/json';
  answer.writeHead(200, { ...headers, 'content-type': type, 'content-length': Buffer.byteLength(body) });
  if (directives.cut_after === undefined) return void answer.end(body);
  answer.write(body.slice(0, body.length >> 1));
  await cutOff(answer);
}

function jsonOf(body: object): string {
  return `${JSON.stringify(body, null, 2)}\n`;
}

/** `partial`: all but the first failed; `twice`: each picture occurs twice, and is charged once. */
function picturesOf({ vendor, params, origin }: Painting): Picture[] {
  const { directives } = params;
  if (directives.empty || directives.failed) return directives.failed ? [undefined] : [];
  const pictures = Array.from({ length: params.count }, (_, index): Picture => {
    if (directives.partial && index > 0) return undefined;
    const seed = seedOf(params.model, params.prompt, index);
    if (!params.asBytes) return { url: imageLink(origin, seed, params.size, vendor.now(), directives.link_lasts) };
    return { base64: pictureOf(seed, params.size).bytes.toString('base64') };
  });
  return directives.twice ? pictures.flatMap((picture) => [picture, picture]) : pictures;
}

function charge(painting: Painting, pictures: readonly Picture[], startedAt: number, answer: ServerResponse): void {
  const { vendor, dialect, params } = painting;
  const { directives } = params;
  if (directives.failed) return;
  const left = answer.destroyed;
  const made = directives.empty ? params.count : Math.min(params.count, pictures.filter(Boolean).length);
  const outcome = left || directives.cut_after !== undefined ? 'cut' : 'complete';
  const entry = enter(painting, dialect.usage(params, made), startedAt, outcome);
  if (left) return;
  answer.once('close', () => {
    if (!answer.writableFinished) vendor.bill.turnedOutCut(entry);
  });
}

function enter({ vendor, params, id, requestId }: Painting, usage: Usage, at: number, outcome: 'complete' | 'cut') {
  const common = { protocol: 'images', model: params.model, requestId, answerId: id } as const;
  return vendor.bill.add({ ...common, at, endedAt: vendor.now(), usage, outcome });
}
