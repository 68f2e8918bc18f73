/** Stores generated files for accounts and serves them at signed addresses until they expire. */

import { createSecretKey, type KeyObject } from 'node:crypto';
import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import {
  definePlugin,
  type Endpoint,
  type Exchange,
  type Fault,
  type Host,
  type Notice,
  type PluginInstance,
  type StoreState,
} from '../../core/contract/contract.ts';
import type { GatewayError } from '../../core/contract/errors.ts';
import type { Answer } from '../../core/contract/message.ts';
import type { RotatedSecret } from '../../core/contract/secret.ts';
import { accounts } from '../common/domain/accounts.ts';
import { fileAdmin } from '../common/domain/admin/files.ts';
import { fileStatistics } from '../common/domain/admin/stored-work.ts';
import { database } from '../common/domain/database.ts';
import { funds, ledger } from '../common/domain/ledger.ts';
import { fileCopies, files, sealedFiles, uploadedFiles } from '../common/domain/stored-files.ts';
import { envelope } from '../common/kit/error-envelope.ts';
import { checkedExpiry, originFor, signedPath } from './address.ts';
import { openFileAdmin } from './admin.ts';
import { type ByteStore, isAlone, openSealedFiles } from './bytes.ts';
import { commandsOf } from './commands.ts';
import { configSchema, type FilesConfig } from './config.ts';
import { openDisk } from './disk.ts';
import { FileService, noSuchFile } from './file-service.ts';
import { Incoming } from './incoming.ts';
import type { UploadTools } from './pieces.ts';
import type { Paying, RoomLimits } from './room.ts';
import { FileRows } from './rows.ts';
import { UploadRows } from './upload-rows.ts';
import { Uploads } from './uploads.ts';

const sweepIntervalMs = 60_000;
const leftoversIntervalMs = 3_600_000;
/** Allows for videos on slow lines; clients that stop reading are disconnected earlier. */
const answerTimeoutMs = 3_600_000;

export default definePlugin<FilesConfig>({
  name: 'files',
  config: configSchema,
  services: {
    requires: [database],
    optional: [accounts, funds, ledger, fileCopies],
    provides: [files, uploadedFiles, sealedFiles, fileAdmin, fileStatistics],
  },
  setup: (host, config) => setUpFiles(host, config),
});

async function setUpFiles(host: Host, config: FilesConfig): Promise<PluginInstance<FilesConfig>> {
  const db = host.get(database);
  await db.migrate('files', new URL('./migrations/', import.meta.url));
  // Without a ledger, all have.
  const paying: Paying = async (accountIds, runner) =>
    (await host.find(funds)?.paying(accountIds, runner)) ?? new Set(accountIds);
  const rows = new FileRows(db, paying);
  const keys = await openKeys(host, rows, config.secret);
  const directory = join(host.commonDirectory, 'files', host.schema);
  const processes = () => host.find(ledger)?.processes;
  const store = await openStore(directory, config, host);
  const incoming = new Incoming(directory, incomingOptions(config), host.random);
  if (host.mode !== 'check') await incoming.open();
  const keeper = keeperOf(host, config, directory, { rows, store, incoming });
  let listening = 'http://127.0.0.1';
  const origin = (requested?: string) => (config.origin === '' ? originFor(requested, listening) : config.origin);
  const uploads = new UploadRows(db);
  host.provide(uploadedFiles, uploadsOf(host, config, directory, origin, { files: keeper, rows: uploads, store }));
  host.provide(sealedFiles, openSealedFiles(directory, config, store));
  host.provide(fileAdmin, openFileAdmin({ rows, uploads, clock: host.clock }));
  host.provide(fileStatistics, { keptBytes: () => rows.room.keptBytes(), bucketAwayMs: () => store.awayMs?.() });
  host.provide(files, {
    ensureRoom: (accountId) => keeper.ensureRoom(accountId),
    keep: (content, kind, owner, signal) => keeper.keep(content, kind, owner, signal),
    find: (accountId, fileId) => keeper.find(accountId, fileId),
    expiries: (fileIds) => keeper.expiries(fileIds),
    read: (accountId, fileId) => keeper.read(accountId, fileId),
    answer: (accountId, fileId, exchange) => keeper.answer(accountId, fileId, exchange),
    address(fileId, requestedHost) {
      return origin(requestedHost) + signedPath(keys.all()[0], host.schema, fileId, host.clock.now() + config.links);
    },
    removeFilesOfTask: (accountId, taskId) => keeper.removeFilesOfTask(accountId, taskId),
    removeOfAccount: (accountId) => keeper.removeOfAccount(accountId),
  });
  return {
    endpoints: endpointsOf((exchange) => answerAddress(exchange, host, keys.all(), keeper)),
    commandLine: {
      commands: commandsOf(host, rows),
      secrets: () => [rotatedAddresses(rows, config, keys.all().length)],
    },
    reload: { members: ['secret'], prepare: keys.prepare },
    checks: {
      notices: () => noticesOf(config, db.shared === true && processes() === undefined),
      problems: () => problemsOf(config, processes()),
    },
    health: { stores: () => storesOf(store) },
    lifecycle: {
      start: () => sweepRegularly(host, keeper, incoming),
      listening(address) {
        listening = address;
      },
      async stop() {
        await incoming.close();
        store.close();
      },
    },
  };
}

async function sweepRegularly(host: Host, keeper: FileService, incoming: Incoming): Promise<void> {
  host.every(sweepIntervalMs, 'sweep files', async () => void (await keeper.sweep()));
  host.every(leftoversIntervalMs, 'remove what fetching left', () => incoming.removeLeftovers(host.clock.now()));
  await incoming.removeLeftovers(host.clock.now());
}

function storesOf({ awayMs }: ByteStore): Record<string, StoreState> {
  return awayMs === undefined ? {} : { bucket: awayMs() === 0 ? 'ok' : 'away' };
}

type Keys = readonly [KeyObject, ...KeyObject[]];
const madeSecret = 'secret';

/** The first signs, all are accepted. Keeps addresses valid after a restart, and on every host that shares the database. */
async function loadKeys(host: Host, rows: FileRows, configured: readonly string[]): Promise<Keys> {
  if (host.mode === 'check') return [createSecretKey(Buffer.alloc(32))];
  const made =
    configured.length === 0
      ? await rows.getOrSetSetting(madeSecret, host.random.bytes(32).toString('base64url'))
      : await rows.findSetting(madeSecret);
  const secrets = new Set([...configured, ...(made === undefined ? [] : [made])]);
  return [...secrets].map((secret) => createSecretKey(Buffer.from(secret, 'utf8'))) as [KeyObject, ...KeyObject[]];
}

/** The keys of addresses, which another list of secrets changes while the gateway serves. */
async function openKeys(host: Host, rows: FileRows, configured: readonly string[]) {
  let running = configured;
  let keys = await loadKeys(host, rows, configured);
  return {
    all: () => keys,
    async prepare({ secret }: FilesConfig) {
      const next = isDeepStrictEqual(secret, running) ? keys : await loadKeys(host, rows, secret);
      return () => {
        [running, keys] = [secret, next];
      };
    },
  };
}

function rotatedAddresses(rows: FileRows, { secret, links }: FilesConfig, secrets: number): RotatedSecret {
  return {
    setting: 'files.secret',
    uses: 'signatures of addresses of files',
    secrets,
    async rotate(givesUp) {
      if (givesUp && secret.length > 0) await rows.removeSetting(madeSecret);
      const hours = Math.ceil(links / 3_600_000);
      return {
        done: 0,
        left: 0,
        advice: `addresses end by themselves: the others can be removed ${hours} h after every process signs with the first`,
      };
    },
  };
}

function incomingOptions({ fetch, file_limit: maxBytes }: FilesConfig) {
  const guard = { allowPrivate: fetch.allow_private, maxBytes };
  return { guard, parallel: fetch.parallel, timeoutMs: fetch.timeout, attempts: fetch.attempts };
}

function keeperOf(
  { clock, random, log }: Host,
  config: FilesConfig,
  directory: string,
  rooms: { rows: FileRows; store: Awaited<ReturnType<typeof openStore>>; incoming: Incoming },
): FileService {
  return new FileService(
    {
      directory,
      retentionMs: config.retention,
      fileBytes: config.file_limit,
      limits: roomLimits(config),
      reserveBytes: config.disk_reserve,
      sending: {
        answers: config.answers,
        answersPerClient: config.answers_per_client,
        slowest: config.slowest,
      },
    },
    { ...rooms, clock, random, log },
  );
}

export function roomLimits({ account_limit: accountBytes, total_limit: totalBytes, free }: FilesConfig): RoomLimits {
  const [freeBytes, freeAccountBytes] = [free.limit, free.account].map((part) => Math.floor(part * totalBytes));
  return { accountBytes, totalBytes, freeBytes: freeBytes!, freeAccountBytes: freeAccountBytes! };
}

function uploadsOf(
  host: Host,
  { uploads, disk_reserve: reserveBytes }: FilesConfig,
  directory: string,
  origin: (host?: string) => string,
  rooms: Pick<UploadTools, 'files' | 'rows' | 'store'>,
): Uploads {
  const { clock, random } = host;
  const { file_limit: mostBytes, files: mostFiles, retention: retentionMs, parallel } = uploads;
  const atOnce = { account: parallel, all: 10 * parallel };
  const options = { directory, mostBytes, mostFiles, retentionMs, reserveBytes, atOnce, origin };
  return new Uploads(options, { ...rooms, clock, random, copies: () => host.find(fileCopies) });
}

async function answerAddress(exchange: Exchange, host: Host, keys: Keys, keeper: FileService): Promise<Answer> {
  const { params, query } = exchange.request;
  const fileId = params['file_id'] ?? '';
  const requested = { fileId, expires: query.get('expires') ?? '', signature: query.get('signature') ?? '' };
  const now = host.clock.now();
  const expiresAt = keys.map((key) => checkedExpiry(key, host.schema, requested, now)).find((at) => at !== undefined);
  if (expiresAt === undefined) throw noSuchFile();
  return keeper.answerAddress(fileId, expiresAt, exchange);
}

function endpointsOf(handle: (exchange: Exchange) => Promise<Answer>): Endpoint[] {
  return (['GET', 'HEAD'] as const).map((method) => ({
    method,
    path: '/v1/files/:file_id/content',
    operation: 'files',
    describes: method === 'HEAD' ? [] : [{ summary: 'Sends a file.', answers: ['application/octet-stream'] }],
    keyless: true,
    body: 'none',
    timeoutMs: answerTimeoutMs,
    handle,
    renderError: (error: GatewayError) => ({
      status: error.status,
      headers: { 'content-type': 'application/json', 'cache-control': 'no-store' },
      body: JSON.stringify(envelope(error)),
    }),
  }));
}

function noticesOf(config: FilesConfig, mayBeSeveral: boolean): Notice[] {
  const notices: Notice[] = [];
  if (config.origin === '')
    notices.push({ level: 'warning', text: 'files.origin is not set: addresses of files lead to this machine alone.' });
  if (mayBeSeveral && isAlone(config)) {
    const text =
      'files.s3.bucket is not set: a second process on this PostgreSQL would not find the files of this one.';
    notices.push({ level: 'warning', text });
  }
  return notices;
}

/** Each of several processes would find its own files alone. */
function problemsOf(config: FilesConfig, processes = 1): Fault[] {
  if (processes <= 1 || !isAlone(config)) return [];
  const message = `is needed: up to ${processes} processes serve from this PostgreSQL (billing.nodes), and each would find only the files in its own data directory. Name a bucket, or set files.disk to shared where all of them use one directory, or billing.nodes to 1.`;
  return [{ path: ['s3', 'bucket'], message }];
}

/** The S3 client is loaded only if a bucket is configured. */
export async function openStore(
  directory: string,
  config: FilesConfig,
  host: Pick<Host, 'clock' | 'log' | 'every'>,
): Promise<ByteStore> {
  if (config.s3.bucket === '') return openDisk(directory);
  const { openBucket } = await import('./s3.ts');
  return openBucket(directory, config.s3, host);
}
