/** The form of an upload, read as it arrives: its file goes to the disk, its other members are checked. */
import type { GatewayError } from '../../core/contract/errors.ts';
import type { ClientRequest } from '../../core/contract/message.ts';
import { invalid } from '../../core/json/request-body.ts';
import type { ReceivedFile } from '../common/domain/stored-files.ts';
import { readFormStream, type StreamedPart } from '../common/kit/forms/form-stream.ts';
import { boundaryIn } from '../common/kit/forms/multipart.ts';

export interface UploadForm {
  readonly received: ReceivedFile;
  readonly filename: string;
  readonly mediaType: string;
  /** Its other members, as text. */
  readonly members: ReadonlyMap<string, string>;
}

const longestMember = 1_000;
const longestName = 255;
const mostMembers = 20;

/** Throws invalid_request that names the field. The received part is removed then. */
export async function readUploadForm(
  request: ClientRequest,
  receive: (body: AsyncIterable<Uint8Array>) => Promise<ReceivedFile>,
  name = 'file',
): Promise<UploadForm> {
  const boundary = boundaryIn(request.headers['content-type']);
  if (boundary === undefined)
    throw wrong('The request must be a form (multipart/form-data) with a file.', 'content-type');
  const members = new Map<string, string>();
  let file: Omit<UploadForm, 'members'> | undefined;
  try {
    for await (const part of readFormStream(request.openBody!(), boundary)) {
      if (part.name === name) {
        if (file !== undefined) throw wrong(`The field "${name}" is there more than once.`, name);
        file = await fileOf(part, receive);
      } else await readMember(part, members);
    }
    if (file === undefined) throw wrong(`The field "${name}" is missing.`, name);
    return { ...file, members };
  } catch (error) {
    await file?.received.discard();
    throw error;
  }
}

async function readMember(part: StreamedPart, members: Map<string, string>): Promise<void> {
  if (members.has(part.name)) throw wrong(`The field "${part.name}" is there more than once.`, part.name);
  if (members.size === mostMembers) throw wrong(`The form has more than ${mostMembers} members.`, part.name);
  members.set(part.name, await textOf(part));
}

async function fileOf(part: StreamedPart, receive: (body: AsyncIterable<Uint8Array>) => Promise<ReceivedFile>) {
  if (part.filename === undefined) throw wrong(`The field "${part.name}" must be a file with a name.`, part.name);
  const received = await receive(part.body);
  return { received, filename: nameOf(part.filename), mediaType: part.mediaType ?? 'application/octet-stream' };
}

/** The last component of the path. */
function nameOf(filename: string): string {
  return cleanName(filename.split(/[\\/]/).at(-1)!);
}

/** Without what no file name has. */
export function cleanName(text: string): string {
  const name = text
    .replace(/[\p{Cc}\ufffd]/gu, '')
    .toWellFormed()
    .trim();
  return name === '' ? 'unnamed' : name.slice(0, longestName).toWellFormed();
}

async function textOf(part: StreamedPart): Promise<string> {
  if (part.filename !== undefined) throw wrong(`The field "${part.name}" must be a text, not a file.`, part.name);
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of part.body) {
    bytes += chunk.length;
    if (bytes > longestMember) throw wrong(`The field "${part.name}" is too long.`, part.name);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString('utf8');
}

function wrong(message: string, field: string): GatewayError {
  return invalid(message, field.slice(0, longestName));
}
