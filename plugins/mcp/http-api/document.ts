/** Reads an OpenAPI document, from a file or an address. */
import { readFile, stat } from 'node:fs/promises';
import { parse } from 'yaml';
import type { Host } from '../../../core/contract/contract.ts';
import { isObject, type JsonObject, tryParse } from '../../../core/json/json.ts';
import type { ServerConfig } from '../config.ts';

const largestDocument = 32 * 2 ** 20;
const withinMs = 10_000;
const isAddress = (text: string): boolean => /^https?:\/\//.test(text);

/** What is wrong with a document, in a sentence for the operator. */
export class WrongDocument extends Error {
  override readonly name = 'WrongDocument';
}

export const isFile = ({ openapi }: ServerConfig): boolean => openapi !== undefined && !isAddress(openapi);

/** Rejects with WrongDocument. */
export async function readDocument(settings: ServerConfig, host: Pick<Host, 'fetch'>): Promise<JsonObject> {
  const text = isFile(settings) ? await fromFile(settings.openapi!) : await fetched(settings, host);
  const document = tryParse(text) ?? parsedYaml(text);
  if (!isObject(document)) throw new WrongDocument('it is neither JSON nor YAML of an object');
  const version = document['openapi'];
  if (typeof version !== 'string' || !/^3\.[0-2](?:\.|$)/.test(version))
    throw new WrongDocument('it is no OpenAPI document of version 3.0, 3.1 or 3.2');
  return document;
}

function parsedYaml(text: string): unknown {
  try {
    return parse(text, { maxAliasCount: 100 });
  } catch {
    return undefined;
  }
}

async function fromFile(path: string): Promise<string> {
  try {
    if ((await stat(path)).size > largestDocument) throw new WrongDocument(tooLarge);
    return await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof WrongDocument) throw error;
    const { code } = error as NodeJS.ErrnoException;
    throw new WrongDocument(`the file cannot be read (${code ?? 'it failed'})`, { cause: error });
  }
}

const tooLarge = 'it has more than 32 MB';

async function fetched({ openapi, allow_private }: ServerConfig, { fetch }: Pick<Host, 'fetch'>): Promise<string> {
  try {
    const bounds = { timeoutMs: withinMs, maxBytes: largestDocument, allowPrivate: allow_private };
    const answer = await fetch(openapi!, bounds);
    if (answer.ok) return await answer.text();
    await answer.body?.cancel();
    throw new WrongDocument(`its address answers with status ${answer.status}`);
  } catch (error) {
    if (error instanceof WrongDocument) throw error;
    throw new WrongDocument('it cannot be fetched', { cause: error });
  }
}

/** The argument of a tool that is the body of its request. */
export const bodyArgument = 'body';
