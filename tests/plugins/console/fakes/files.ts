/** Uploaded files and batches of two accounts, as their plugins show them. */
import { GatewayError } from '../../../../core/contract/errors.ts';
import type { BatchAdmin, BatchStory, BatchView, OwnedBatch } from '../../../../plugins/common/domain/admin/batches.ts';
import type { FileAdmin, OwnedFile } from '../../../../plugins/common/domain/admin/files.ts';
import { parseUsd, zero } from '../../../../plugins/common/domain/money.ts';
import type { UploadedFiles } from '../../../../plugins/common/domain/stored-files.ts';
import { paged } from './lists.ts';
import { dayMs, minuteMs, type World } from './world.ts';

const none = { succeeded: 0, errored: 0, cancelled: 0, expired: 0 };

export function fakeFiles(world: World, owner: string): { readonly files: UploadedFiles; readonly admin: FileAdmin } {
  const file = (name: string, purpose: string, bytes: number, ageMs: number, accountId = owner): OwnedFile => ({
    id: `file-${name.replace(/\W/g, '')}`,
    accountId,
    name,
    purpose,
    bytes,
    mediaType: 'application/jsonl',
    createdAt: world.now() - ageMs,
    expiresAt: world.now() - ageMs + 7 * dayMs,
  });
  const other = world.accounts[1]!.id;
  let all = [
    file('questions.jsonl', 'batch', 1_834_210, 5 * minuteMs),
    ...Array.from({ length: 30 }, (_, index) =>
      file(`nightly-${index + 1}.jsonl`, 'batch', 48_000 + index * 977, (index + 1) * 240 * minuteMs, other),
    ),
    file('batch_7d1c_output.jsonl', 'batch_output', 5_120_004, 2 * dayMs),
    file('a-report-with-quite-a-long-name-of-the-third-quarter.pdf', 'user_data', 48_120, 6 * dayMs),
  ].toSorted((one, two) => two.createdAt - one.createdAt);
  const own = (accountId: string) => all.filter((row) => row.accountId === accountId);
  const unused = async () => {
    throw new Error('no page asks for it');
  };
  const files: UploadedFiles = {
    mostBytes: 512_000_000,
    reserve: async () => true,
    release: async () => {},
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
      const before = all.length;
      all = all.filter((row) => row.id !== id || row.accountId !== accountId);
      return all.length < before;
    },
    async answer(accountId, id) {
      const found = own(accountId).find((row) => row.id === id);
      if (found === undefined) throw new GatewayError('not_found', 'There is no such file.');
      return { status: 200, headers: { 'content-disposition': 'attachment' }, body: `the bytes of ${found.name}` };
    },
  };
  const admin: FileAdmin = {
    list: async ({ accountId, purpose }, page) => {
      const isWanted = (row: OwnedFile) =>
        (accountId === undefined || row.accountId === accountId) && (purpose === undefined || row.purpose === purpose);
      return paged(all.filter(isWanted), page);
    },
    find: async (id) => all.find((row) => row.id === id),
    storedBytes: async (accountId) => own(accountId).reduce((sum, { bytes }) => sum + bytes, 0),
    async remove(id) {
      const found = all.find((row) => row.id === id);
      return found !== undefined && files.remove(found.accountId, id);
    },
  };
  return { files, admin };
}

type Vendor = BatchStory['vendor'];

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
  const vendor: Vendor = {
    provider: 'openai',
    model: 'gpt-5.4-mini-2026-03-17',
    asked: 'gpt-5.4-mini',
    protocol: 'chat',
    credential: 'openai#1',
    state: 'running',
    lines: 24_000,
    vendorId: 'batch_68f1c2a4b0d8',
    orderedAt: world.now() - 50 * minuteMs,
    cancelSent: false,
    result: undefined,
  };
  const other = world.accounts[1]!.id;
  const timeline = (view: BatchView, accountId = owner, by?: Vendor): BatchStory => ({
    accountId,
    batch: view,
    vendor: by,
  });
  const timelines = [
    timeline(
      batch('running', 4 * minuteMs, { counts: { ...none, succeeded: 431, errored: 2 }, cost: parseUsd('0.8812') }),
    ),
    timeline(
      batch('native', 60 * minuteMs, {
        keyId: world.keys.find(({ accountId }) => accountId === other)!.id,
        total: 24_100,
        counts: { ...none, succeeded: 100 },
        cost: parseUsd('0.05'),
        held: parseUsd('38.4'),
      }),
      other,
      vendor,
    ),
    ...Array.from({ length: 28 }, (_, index) =>
      timeline(
        batch(`nightly${index + 1}`, (index + 2) * 360 * minuteMs, {
          keyId: world.keys.find(({ accountId }) => accountId === other)!.id,
          endpoint: index % 4 === 3 ? '/v1/embeddings' : '/v1/chat/completions',
          state: 'ended',
          outcome: index === 5 ? 'expired' : 'completed',
          total: 300,
          counts: index === 5 ? { ...none, succeeded: 180, expired: 120 } : { ...none, succeeded: 300 },
          cost: parseUsd('0.3'),
          outputFile: `file-nightly${index + 1}output`,
          endedAt: world.now() - (index + 2) * 360 * minuteMs + 30 * minuteMs,
        }),
        other,
      ),
    ),
    timeline(
      batch('done', 2 * dayMs, {
        state: 'ended',
        outcome: 'completed',
        counts: { ...none, succeeded: 1_188, errored: 12 },
        cost: parseUsd('2.41'),
        outputFile: 'file-batch_7d1c_outputjsonl',
        endedAt: world.now() - 2 * dayMs + 40 * minuteMs,
      }),
    ),
    timeline(
      batch('wrong', 3 * dayMs, {
        state: 'ended',
        outcome: 'failed',
        total: 0,
        errors: [4, 17, 18].map((line) => ({ line, ...fault })),
        endedAt: world.now() - 3 * dayMs,
      }),
    ),
  ].toSorted((one, two) => two.batch.createdAt - one.batch.createdAt);
  const found = (accountId: string, id: string) =>
    timelines.find((row) => row.accountId === accountId && row.batch.id === id);
  return {
    list: async (accountId, page) => {
      const own = timelines.filter((row) => row.accountId === accountId);
      return paged(
        own.map((row) => row.batch),
        page,
      );
    },
    find: async (accountId, id) => found(accountId, id)?.batch,
    listAll: async ({ accountId, state, endpoint }, page) => {
      const isWanted = ({ accountId: account, batch: { state: now, outcome, endpoint: address } }: BatchStory) =>
        (accountId === undefined || account === accountId) &&
        (state === undefined || (outcome ?? now) === state) &&
        (endpoint === undefined || address === endpoint);
      return paged(timelines.filter(isWanted).map(rowOf), page);
    },
    findAny: async (id) => timelines.find((row) => row.batch.id === id),
    async cancel(accountId, id) {
      const row = found(accountId, id);
      if (row === undefined) throw new GatewayError('not_found', 'There is no such batch.');
      timelines[timelines.indexOf(row)] = { ...row, batch: { ...row.batch, cancelAt: world.now() } };
    },
    check: async () => ({ lines: 1_200, errors: [] }),
  };
}

/** Lines of open batches are not counted in lists. */
function rowOf({ accountId, batch, vendor }: BatchStory): OwnedBatch {
  const { outcome, counts, cost } = batch;
  const ended = outcome === undefined ? { counts: undefined, cost: undefined } : { counts, cost };
  return { ...batch, ...ended, accountId, provider: vendor?.provider };
}
