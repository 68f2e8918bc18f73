/** The file of an export: compressed lines of JSON, and at its end a digest of all of them. */
import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream, existsSync } from 'node:fs';
import { open, rename, rm } from 'node:fs/promises';
import { pipeline as pipeEnds, Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGunzip, createGzip } from 'node:zlib';
import { GatewayError } from '../../../core/contract/errors.ts';
import type { Migration, Sequence, Sum, Table } from './tables.ts';

export interface Head {
  readonly format: 'model-gateway storage';
  readonly version: 1;
  /** Version of the program that wrote it. */
  readonly program: string;
  readonly at: string;
}
/** Begins a schema; its tables follow. */
export interface SchemaLine {
  readonly schema: string;
  readonly migrations: readonly Migration[];
}
/** So many lines with a row each follow. */
export type TableLine = { readonly table: string } & Pick<Table, 'columns'> & Sum;
export interface SequenceLine {
  readonly sequence: Sequence;
}
export type Line = Head | SchemaLine | TableLine | SequenceLine | End;
interface End {
  readonly end: true;
  readonly sha256: string;
}

const chunkChars = 256 * 1024;

/** Writes the file as a whole or not at all. One that is there stays. */
export async function writeFile(path: string, lines: AsyncIterable<string>): Promise<void> {
  if (existsSync(path)) throw wrong(`${path} is there already: name another file.`);
  const part = `${path}.part`;
  try {
    // It holds what the database holds: digests of keys, and what people wrote.
    const target = createWriteStream(part, { mode: 0o600 });
    await pipeline(Readable.from(withDigest(lines)), createGzip({ level: 1 }), target);
    const file = await open(part, 'r+');
    await file.sync().finally(() => file.close());
    await rename(part, path);
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
}

async function* withDigest(lines: AsyncIterable<string>): AsyncGenerator<string> {
  const hash = createHash('sha256');
  let chunk = '';
  for await (const line of lines) {
    chunk += `${line}\n`;
    if (chunk.length < chunkChars) continue;
    hash.update(chunk);
    yield chunk;
    chunk = '';
  }
  hash.update(chunk);
  yield `${chunk}${JSON.stringify({ end: true, sha256: hash.digest('hex') } satisfies End)}\n`;
}

/** The file's lines but for the last one, which must be there and fit. */
export async function* readLines(path: string): AsyncGenerator<string> {
  const hash = createHash('sha256');
  let last: string | undefined;
  try {
    for await (const line of linesOf(unpacked(path), path)) {
      if (last !== undefined) {
        hash.update(`${last}\n`);
        yield last;
      }
      last = line;
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (error instanceof GatewayError || code === undefined) throw error;
    throw wrong(
      code === 'ENOENT' ? `There is no file ${path}.` : `${path} cannot be read: it is no whole export (${code}).`,
    );
  }
  const end = last?.startsWith('{"end":true') === true ? (JSON.parse(last) as End) : undefined;
  if (end?.sha256 !== hash.digest('hex')) throw wrong(`${path} is cut short or damaged: its digest does not fit.`);
}

function unpacked(path: string): AsyncIterable<Buffer> {
  const target = createGunzip();
  // An error of the file ends the target, too; its reader gets it.
  pipeEnds(createReadStream(path), target, () => undefined);
  return target;
}

async function* linesOf(source: AsyncIterable<Buffer>, path: string): AsyncGenerator<string> {
  let rest: Buffer[] = [];
  for await (const part of source) {
    let from = 0;
    for (let end = part.indexOf(0x0a); end !== -1; end = part.indexOf(0x0a, from)) {
      yield Buffer.concat([...rest, part.subarray(from, end)]).toString('utf8');
      rest = [];
      from = end + 1;
    }
    rest.push(part.subarray(from));
  }
  if (Buffer.concat(rest).length > 0) throw wrong(`${path} is cut short: its last line has no end.`);
}

export function wrong(message: string): GatewayError {
  return new GatewayError('invalid_request', message, { field: 'file' });
}
