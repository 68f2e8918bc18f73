/** Batches: many requests in one order, made within a day through the gateway's whole chain, at most once each. */
import { definePlugin, type Host, type PluginInstance, upstreamRequest } from '../../core/contract/contract.ts';
import { count, duration, size, z } from '../../core/contract/schema.ts';
import { caller, keyring } from '../common/domain/accounts.ts';
import { batchAdmin, batchEndpoints } from '../common/domain/admin/batches.ts';
import { ledgerQueries } from '../common/domain/admin/ledger.ts';
import { batchStatistics } from '../common/domain/admin/stored-work.ts';
import { call, keptForAnswer, keyedCalls } from '../common/domain/calls.ts';
import { type Database, database } from '../common/domain/database.ts';
import { authorization, authorizations, funds } from '../common/domain/ledger.ts';
import { catalog } from '../common/domain/models.ts';
import { uploadedFiles } from '../common/domain/stored-files.ts';
import { providers, target } from '../common/domain/upstreams.ts';
import { DueWatch } from '../common/kit/jobs/due-watch.ts';
import { orderSpans } from '../common/wire/trace.ts';
import { openBatchAdmin } from './admin.ts';
import { AllBatchRows } from './all-rows.ts';
import { modelInEndpoint } from './batch.ts';
import { endpointsOf } from './endpoints.ts';
import { LineRows } from './line-rows.ts';
import { BatchRows } from './rows.ts';
import { BatchSpace } from './space.ts';
import { insteadOfSending } from './vendor/exchanges.ts';
import { VendorRows } from './vendor/rows.ts';
import { Settling } from './vendor/settle.ts';
import type { VendorTools } from './vendor/tools.ts';
import { Wires } from './vendor/wire.ts';
import { VendorWork } from './vendor/work.ts';
import { textOf, Worker } from './worker.ts';

const pollIntervalMs = 100;
/** Batches of a process that is gone are found this late. */
const longestSleepMs = 10_000;
const cleanIntervalMs = 3_600_000;

const positive = (most: number) => count().refine((value) => value >= 1 && value <= most, `must be from 1 to ${most}`);

const configSchema = z.strictObject({
  endpoints: z
    .array(z.enum(batchEndpoints))
    .min(1)
    .default([...batchEndpoints])
    .describe(
      'Addresses that lines of a batch may call; those that the gateway does not offer are left out. Shorten it to allow batches for some endpoints only.',
    ),
  lines: positive(100_000)
    .prefault(50_000)
    .describe('Lines of a batch at most. Raise it when clients have larger files and your database has room.'),
  line: size()
    .refine((bytes) => bytes >= 1_024, 'must be at least 1KB')
    .prefault('4MB')
    .describe('Largest line of an input file. Raise it when lines carry images.'),
  answer: size()
    .refine((bytes) => bytes >= 1_024, 'must be at least 1KB')
    .prefault('16MB')
    .describe('Largest answer that a line keeps. Raise it when lines ask for images.'),
  covered: positive(100)
    .prefault(2)
    .describe(
      'First lines of a batch that the balance must cover when it is ordered, each by what its call would hold. Raise it when batches should not begin without enough money.',
    ),
  open: positive(10_000)
    .prefault(20)
    .describe('Batches of an account that have not ended. Raise it for clients that order many small ones.'),
  window: duration()
    .refine((value) => value >= 1_000 && value <= 7 * 86_400_000, 'must be from 1s to 7d')
    .prefault('24h')
    .describe(
      'Time in which the lines of a batch are begun; then it expires. Raise it when batches wait behind limits for longer than a day.',
    ),
  retention: duration()
    .refine((value) => value >= 3_600_000, 'must be at least 1h')
    .prefault('30d')
    .describe('How long a batch is listed after its end. Raise it when clients fetch results late.'),
  lease: duration()
    .refine((value) => value >= 1_000 && value <= 600_000, 'must be from 1s to 10m')
    .prefault('30s')
    .describe(
      'How long a process keeps a batch that it does not renew; then another process continues it. Raise it when processes pause for long.',
    ),
  native: z
    .strictObject({
      poll: duration()
        .refine((value) => value >= 50 && value <= 3_600_000, 'must be from 50ms to 1h')
        .prefault('30s')
        .describe('How often a vendor is asked for its batch. Raise it when the vendor limits such requests.'),
      settle: duration()
        .refine((value) => value >= 50 && value <= 3_600_000, 'must be from 50ms to 1h')
        .prefault('60s')
        .describe(
          'How long after an order that got no answer the vendor is asked whether it has the batch. Raise it when a vendor lists new batches late.',
        ),
    })
    .prefault({})
    .describe(
      "Batches that vendors' own batch APIs make, where a provider or a model has the trait `batches: native`.",
    ),
  at_once: z
    .strictObject({
      batches: positive(1_000)
        .prefault(4)
        .describe('Batches that a process works on at once. Raise it when batches wait although vendors have room.'),
      lines: positive(1_000)
        .prefault(4)
        .describe('Lines of a batch that run at once. Raise it for vendors that allow many calls at a time.'),
    })
    .prefault({})
    .describe('How much of a process batches take; limits of accounts and vendors hold besides.'),
});

type Config = z.output<typeof configSchema>;

export default definePlugin<Config>({
  name: 'batches',
  config: configSchema,
  services: {
    requires: [database, keyring, uploadedFiles],
    optional: [keyedCalls, ledgerQueries, providers, catalog, authorizations, funds, orderSpans],
    provides: [batchAdmin, batchStatistics],
  },
  requires: [caller],
  optional: [upstreamRequest, target, authorization, keptForAnswer],
  setup: setUpBatches,
});

async function setUpBatches(host: Host, config: Config): Promise<PluginInstance<Config>> {
  const store = host.get(database);
  await store.migrate('batches', new URL('./migrations/', import.meta.url));
  const [rows, lines] = [new BatchRows(store), new LineRows(store)];
  const files = () => host.get(uploadedFiles);
  const limits = { lines: config.lines, lineBytes: config.line };
  const { at_once: atOnce, answer: answerBytes, window: windowMs, open: mostOpen, lease: leaseMs } = config;
  const space = new BatchSpace({ files, lines, openMs: windowMs, listedMs: config.retention });
  const due = new DueWatch({ clock: host.clock, longestMs: longestSleepMs, nextMs: () => rows.nextDueMs() });
  const released = () => due.changed();
  const wires = new Wires(answerBytes + config.line, host.clock);
  const vendorWork = openVendorWork(host, store, config, wires);
  const worker = new Worker(
    { limits, ...atOnce, answerBytes, leaseMs },
    { host, rows, lines, files, space, vendorWork, released },
  );
  host.provide(batchStatistics, { lines: worker.lines, figures: () => rows.figures() });
  const poll = () => due.look(() => worker.poll());
  const tools = { host, rows, files, space, mostOpen, limits, windowMs, covered: config.covered };
  const wake = () => {
    due.changed();
    poll()?.catch((error: unknown) => host.log.warn({ error }, 'batches could not be taken'));
  };
  host.provide(
    batchAdmin,
    openBatchAdmin({
      rows,
      allRows: new AllBatchRows(store),
      vendorRows: new VendorRows(store),
      files,
      endpoints: config.endpoints.filter((path) => modelInEndpoint(path) === undefined),
      limits,
      wake,
    }),
  );
  return {
    get endpoints() {
      return endpointsOf({ ...tools, endpoints: config.endpoints, wake });
    },
    addresses: { pathPrefixes: ['/v1', '/v1beta', '/v1alpha'] },
    applies: (endpoint) => endpoint.method === 'POST' && (endpoint.setsOnOpen?.includes(call) ?? false),
    handle: (exchange, next) => exchange.find(insteadOfSending)?.(exchange) ?? next(),
    lifecycle: {
      start() {
        host.every(pollIntervalMs, 'work on batches', poll);
        host.every(cleanIntervalMs, 'forget old batches', () => rows.removeOld(config.retention));
      },
      drain: () => worker.drain(),
      async stop() {
        await worker.stop();
        await wires.close();
      },
    },
  };
}

function openVendorWork(host: Host, store: Database, config: Config, wires: Wires): VendorWork {
  const rows = new VendorRows(store);
  const { poll: pollMs, settle: settleMs } = config.native;
  const options = { pollMs, settleMs, answerBytes: config.answer, lines: config.at_once.lines };
  const settling = new Settling({ host, store, rows });
  const read: VendorTools['textOf'] = (batch, line) => textOf(host.get(uploadedFiles), batch, line);
  return new VendorWork({ host, rows, settling, options, textOf: read }, wires);
}
