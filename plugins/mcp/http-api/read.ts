/** Reads the operations of an API, and says what is wrong with documents that are files: at the start, by `check` and at a reload. */
import type { Fault, Host } from '../../../core/contract/contract.ts';
import { isLike } from '../../../core/tools/wildcard.ts';
import type { McpConfig, ServerConfig } from '../config.ts';
import { mostListed } from '../upstream.ts';
import { isFile, readDocument, WrongDocument } from './document.ts';
import { type Operations, operationsOf } from './operations.ts';

/** Rejects with WrongDocument. */
export async function readOperations(settings: ServerConfig, host: Pick<Host, 'fetch'>): Promise<Operations> {
  const { headers, url } = settings;
  const given = { headers: new Set(Object.keys(headers)), query: new Set(new URL(url).searchParams.keys()) };
  const isWanted = (name: string) => settings.tools.some((pattern) => isLike(pattern, name));
  return operationsOf(await readDocument(settings, host), given, isWanted, mostListed);
}

export async function documentFaults({ servers }: McpConfig, host: Pick<Host, 'fetch'>): Promise<readonly Fault[]> {
  const faults = await Promise.all(Object.entries(servers).map(([name, settings]) => faultOf(name, settings, host)));
  return faults.filter((fault) => fault !== undefined);
}

async function faultOf(name: string, settings: ServerConfig, host: Pick<Host, 'fetch'>): Promise<Fault | undefined> {
  if (settings.openapi === undefined) return undefined;
  if (!/^https?:/.test(settings.url))
    return { path: ['servers', name, 'url'], message: 'the address of an HTTP API must be an http(s) address.' };
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
