/** Uploaded files and batches of one account, as their plugins show them. */
import { GatewayError } from '../../../../core/contract/errors.ts';
import type { BatchAdmin, BatchView } from '../../../../plugins/common/domain/admin/batches.ts';
import { parseUsd, zero } from '../../../../plugins/common/domain/money.ts';
import type { UploadedFile, UploadedFiles } from '../../../../plugins/common/domain/stored-files.ts';
import { paged } from './lists.ts';
import { dayMs, minuteMs, type World } from './world.ts';

const none = { succeeded: 0, errored: 0, cancelled: 0, expired: 0 };

export function fakeFiles(world: World, owner: string): UploadedFiles {
  const file = (name: string, purpose: string, bytes: number, ageMs: number): UploadedFile => ({
    id: `file-${name.replace(/\W/g, '')}`,
    name,
    purpose,
    bytes,
    mediaType: 'application/jsonl',
    createdAt: world.now() - ageMs,
    expiresAt: world.now() - ageMs + 7 * dayMs,
  });
  let files = [
    file('questions.jsonl', 'batch', 1_834_210, 5 * minuteMs),
    file('batch_7d1c_output.jsonl', 'batch_output', 5_120_004, 2 * dayMs),
    file('a-report-with-quite-a-long-name-of-the-third-quarter.pdf', 'user_data', 48_120, 6 * dayMs),
  ];
  const own = (accountId: string) => (accountId === owner ? files : []);
  const unused = async () => {
    throw new Error('no page asks for it');
  };
  return {
    mostBytes: 512_000_000,
    newId: () => 'file-new',
    receive: unused,
    keep: unused,
    pieces: { received: unused, add: unused, read: () => unused() as never, remove: unused },
    origin: () => 'http://127.0.0.1',
    open: unused,
    find: async (accountId, id) => own(accountId).find((row) => row.id === id),
    list: async (accountId, { purpose, limit }) => {
      const found = own(accountId).filter((row) => purpose === undefined || row.purpose === purpose);
      return { files: found.slice(0, limit), more: found.length > limit };
    },
    async remove(accountId, id) {
      const before = own(accountId).length;
      if (accountId === owner) files = files.filter((row) => row.id !== id);
      return own(accountId).length < before;
    },
    async answer(accountId, id) {
      const found = own(accountId).find((row) => row.id === id);
      if (found === undefined) throw new GatewayError('not_found', 'There is no such file.');
      return { status: 200, headers: { 'content-disposition': 'attachment' }, body: `the bytes of ${found.name}` };
    },
  };
}

export function fakeBatches(world: World, owner: string): BatchAdmin {
  const batch = (id: string, ageMs: number, more: Partial<BatchView>): BatchView => ({
    id: `batch_${id}`,
    keyId: world.keys[0]!.id,
    endpoint: '/v1/chat/completions',
    state: 'running',
    outcome: undefined,
    total: 1_200,
    counts: none,
    cost: zero,
    held: zero,
    errors: [],
    inputFile: 'file-questionsjsonl',
    outputFile: undefined,
    errorFile: undefined,
    createdAt: world.now() - ageMs,
    endedAt: undefined,
    cancelAt: undefined,
    expiresAt: world.now() - ageMs + dayMs,
    ...more,
  });
  const fault = { code: 'invalid_json_line', message: 'This line is not a JSON object.', param: null };
  const batches = [
    batch('running', 4 * minuteMs, { counts: { ...none, succeeded: 431, errored: 2 }, cost: parseUsd('0.8812') }),
    batch('done', 2 * dayMs, {
      state: 'ended',
      outcome: 'completed',
      counts: { ...none, succeeded: 1_188, errored: 12 },
      cost: parseUsd('2.41'),
      outputFile: 'file-batch7d1coutputjsonl',
      endedAt: world.now() - 2 * dayMs + 40 * minuteMs,
    }),
    batch('wrong', 3 * dayMs, {
      state: 'ended',
      outcome: 'failed',
      total: 0,
      errors: [4, 17, 18].map((line) => ({ line, ...fault })),
      endedAt: world.now() - 3 * dayMs,
    }),
  ];
  const found = (accountId: string, id: string) => batches.find((row) => accountId === owner && row.id === id);
  return {
    list: async (accountId, page) => paged(accountId === owner ? batches : [], page),
    find: async (accountId, id) => found(accountId, id),
    async cancel(accountId, id) {
      const row = found(accountId, id);
      if (row === undefined) throw new GatewayError('not_found', 'There is no such batch.');
      batches[batches.indexOf(row)] = { ...row, cancelAt: world.now() };
    },
    check: async () => ({ lines: 1_200, errors: [] }),
  };
}
