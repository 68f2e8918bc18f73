/** Checks that all addresses of stores share: the store is one of the account, the account may keep something, the thing is there. */
import type { Exchange, Host } from '../../core/contract/contract.ts';
import { GatewayError } from '../../core/contract/errors.ts';
import { caller } from '../common/domain/accounts.ts';
import type { UploadedFiles } from '../common/domain/stored-files.ts';
import { jsonAnswer } from '../common/kit/dialects.ts';
import type { FileOrder } from './asked.ts';
import type { ChunkRows } from './chunk-rows.ts';
import type { Config } from './config.ts';
import type { FileRows, NewFile } from './file-rows.ts';
import type { Searches } from './search.ts';
import type { Store } from './shapes.ts';
import type { StoreRows } from './store-rows.ts';

export interface EndpointTools {
  readonly host: Host;
  readonly config: Config;
  readonly stores: StoreRows;
  readonly files: FileRows;
  readonly chunks: ChunkRows;
  readonly searches: Searches;
  readonly uploads: () => UploadedFiles;
  /** Files are due. */
  readonly wake: () => void;
}

/** What a request keeps for the calls of its files. */
const keptHeaders = ['x-gateway-tags'];
/** Ids here have it, so that no vendor's store is taken for one that is gone. */
export const storePrefix = 'vs_gw';

export const accountOf = (exchange: Exchange): string => exchange.get(caller).accountId;
export const parameter = ({ request }: Exchange, name: string): string => request.params[name] ?? '';
export const json = (value: object) => jsonAnswer(JSON.stringify(value));
export const newId = ({ host }: EndpointTools, prefix: string): string =>
  prefix + host.random.bytes(16).toString('hex');

export async function storeOf({ stores }: EndpointTools, exchange: Exchange): Promise<Store> {
  const store = await stores.find(accountOf(exchange), parameter(exchange, 'vector_store_id'));
  if (store === undefined) throw noSuchStore();
  return store;
}

/** One that has not expired. */
export async function usedStore(tools: EndpointTools, exchange: Exchange): Promise<Store> {
  const store = await storeOf(tools, exchange);
  if (store.isExpired) throw expired();
  return store;
}

/** The same for ids that never were, that are gone, and that belong to others. */
export function noSuchStore(field?: string): GatewayError {
  return new GatewayError('not_found', 'There is no such vector store.', {
    ...(field === undefined ? {} : { field }),
    ...{ code: 'vector_store_not_found', shouldRetry: false },
  });
}

export function expired(field?: string): GatewayError {
  return new GatewayError('invalid_request', 'This vector store has expired.', {
    ...(field === undefined ? {} : { field }),
    ...{ code: 'vector_store_expired', shouldRetry: false },
  });
}

export function noSuchFile(field?: string): GatewayError {
  return new GatewayError('not_found', 'There is no such file.', {
    ...(field === undefined ? {} : { field }),
    ...{ code: 'file_not_found', shouldRetry: false },
  });
}

export function noRoom(message: string): GatewayError {
  return new GatewayError('forbidden', message, { code: 'vector_store_space_used_up', shouldRetry: false });
}

/** Finds the uploaded files, each of which is there once in a store. */
export async function filesOf(
  tools: EndpointTools,
  exchange: Exchange,
  storeId: string,
  orders: readonly FileOrder[],
): Promise<NewFile[]> {
  const { accountId, keyId } = exchange.get(caller);
  const { remoteAddress, headers } = exchange.request;
  const kept = keptHeaders.flatMap((name) => (headers[name] === undefined ? [] : [[name, headers[name]] as const]));
  const by = { accountId, keyId, remoteAddress, headers: Object.fromEntries(kept), storeId };
  const files = new Map<string, NewFile>();
  for (const { fileId, field, attributes, chunking } of orders) {
    const file = await tools.uploads().find(accountId, fileId);
    if (file === undefined) throw noSuchFile(field);
    files.set(file.id, { ...by, id: newId(tools, 'vsf_'), fileId: file.id, name: file.name, attributes, chunking });
  }
  return [...files.values()];
}
