/** Reads the operations of an API, and says what is wrong with a document that is a file. */
import type { Fault, Host } from '../../../core/contract/contract.ts';
import { isLike } from '../../../core/tools/wildcard.ts';
import type { ServerConfig } from '../config.ts';
import { mostListed } from '../upstream.ts';
import { isFile, readDocument, WrongDocument } from './document.ts';
import { type Operations, operationsOf } from './operations.ts';

/** Rejects with WrongDocument. */
export async function readOperations(settings: ServerConfig, host: Pick<Host, 'fetch'>): Promise<Operations> {
  const { headers, url } = settings;
  const given = { headers: new Set(Object.keys(headers)), query: new Set(new URL(url!).searchParams.keys()) };
  const isWanted = (name: string) => settings.tools.some((pattern) => isLike(pattern, name));
  return operationsOf(await readDocument(settings, host), given, isWanted, mostListed);
}

/** undefined: the document can be used, or lies at an address and is read by the first request. */
export async function documentFault(
  name: string,
  settings: ServerConfig,
  host: Pick<Host, 'fetch'>,
): Promise<Fault | undefined> {
  if (!isFile(settings)) return undefined;
  try {
    await readOperations(settings, host);
    return undefined;
  } catch (error) {
    if (!(error instanceof WrongDocument)) throw error;
    const message = `the document of "${name}" cannot be used: ${error.message}.`;
    return { path: ['servers', name, 'openapi'], message };
  }
}
