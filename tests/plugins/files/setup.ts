/** Parts of the plugin put together for tests: a keeper on a disk or a bucket, a vendor that serves what it made. */
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { FileOwner } from '../../../plugins/common/domain/stored-files.ts';
import type { ByteStore } from '../../../plugins/files/bytes.ts';
import { configSchema } from '../../../plugins/files/config.ts';
import { FileService } from '../../../plugins/files/file-service.ts';
import { Incoming } from '../../../plugins/files/incoming.ts';
import { openStore, roomLimits } from '../../../plugins/files/index.ts';
import { FileRows } from '../../../plugins/files/rows.ts';
import { openDatabase } from '../../helpers/database.ts';
import { type FakeHost, fakeHost } from '../../helpers/fakes.ts';

export const png = Buffer.concat([Buffer.from('\x89PNG\r\n\x1a\n\0\0\0\rIHDR', 'latin1'), Buffer.alloc(200, 1)]);
export const mp4 = Buffer.concat([
  Buffer.from('\0\0\0\x18ftypisom\0\0\x02\0isommp41', 'latin1'),
  Buffer.alloc(300_000, 2),
]);
export const never = new AbortController().signal;
export const owner = (taskId = 'task-1', number = 0, accountId = 'account-1'): FileOwner => ({
  accountId,
  taskId,
  number,
});

export interface Rooms {
  readonly keeper: FileService;
  readonly store: ByteStore;
  readonly rows: FileRows;
  readonly host: FakeHost;
  readonly directory: string;
  readonly schema: string;
  /** Another process on the same database and directory. */
  beside(changes?: Partial<ByteStore>): Promise<Rooms>;
  close(): Promise<void>;
}

type Settings = Parameters<typeof configSchema.parse>[0];

/** `paying`: accounts that have paid; absent: all have. */
export async function openRooms(
  settings: Settings = {},
  changes: Partial<ByteStore> = {},
  paying?: ReadonlySet<string>,
): Promise<Rooms> {
  const directory = await mkdtemp(join(tmpdir(), 'files-'));
  const database = await openDatabase({ plugins: ['files'] });
  const host = fakeHost();
  const config = configSchema.parse(settings);
  return open(changes);

  async function open(mixed: Partial<ByteStore> = {}): Promise<Rooms> {
    const rows = new FileRows(database, paying && (async (ids) => new Set(ids.filter((id) => paying.has(id)))));
    const store = { ...(await openStore(directory, config, host)), ...mixed };
    const guard = { allowPrivate: config.fetch.allow_private, maxBytes: config.file_limit };
    const { parallel, timeout: timeoutMs, attempts } = config.fetch;
    const incoming = new Incoming(directory, { guard, parallel, timeoutMs, attempts }, host.random);
    await incoming.open();
    const keeper = new FileService(
      {
        directory,
        retentionMs: config.retention,
        fileBytes: config.file_limit,
        limits: roomLimits(config),
        reserveBytes: config.disk_reserve,
        sending: { answers: config.answers, slowest: 4_096 },
      },
      { rows, store, incoming, clock: host.clock, random: host.random, log: host.log },
    );
    return {
      ...{ keeper, store, rows, host, directory, schema: database.schema },
      beside: open,
      async close() {
        await incoming.close();
        store.close();
        await database.close();
        await rm(directory, { recursive: true, force: true });
      },
    };
  }
}

/** A server of a vendor's results. */
export async function withVendor(
  answer: (request: IncomingMessage, response: ServerResponse, number: number) => void,
  work: (origin: string, seen: string[]) => Promise<void>,
): Promise<void> {
  const seen: string[] = [];
  const server = createServer((request, response) => {
    seen.push(request.url!);
    answer(request, response, seen.length);
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  try {
    await work(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => void server.close(resolve));
  }
}
