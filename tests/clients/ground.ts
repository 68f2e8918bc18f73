/** What the clients call, behind a proxy: one gateway in this process, or a fleet of two without affinity. */
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { boot } from '../../core/gateway/boot.ts';
import { createLog } from '../../core/gateway/log.ts';
import { database } from '../../plugins/common/domain/database.ts';
import { gather } from '../end-to-end/fleet.ts';
import { dropSchema, faces, type Testbed, yamlOf } from '../end-to-end/testbed.ts';
import { databaseUrl, ownSchema } from '../helpers/database.ts';
import { startGateway } from '../helpers/gateway.ts';
import { startPostgres } from '../helpers/postgres.ts';
import { startRedis } from '../helpers/redis.ts';
import { startTurningProxy } from '../helpers/turning-proxy.ts';

export interface Ground {
  readonly origin: string;
  readonly testbed: Pick<Testbed, 'customer' | 'rows' | 'audit'>;
  /** Requests that each process was handed so far. */
  readonly handed: readonly number[];
  /** How many of them were upgrades to a WebSocket. */
  upgrades(): number;
  /** Lays these sections over the others in each gateway, which goes on serving. */
  change(sections: Record<string, unknown>): Promise<void>;
  close(): Promise<void>;
}

/** `sections` are those of the gateways' file. */
export function startGround(sections: Record<string, unknown>): Promise<Ground> {
  return process.env['CLIENTS_ON'] === 'fleet' ? startFleet(sections) : startOne(sections);
}

async function startOne(sections: Record<string, unknown>): Promise<Ground> {
  const directory = await mkdtemp(join(tmpdir(), 'client-gateway-'));
  const schema = ownSchema('clients');
  const named = { gateway: 'clients', schema, listen: '127.0.0.1:0', ...sections };
  const file = yamlOf(named);
  const environment = databaseUrl === undefined ? {} : { DATABASE_URL: databaseUrl };
  const gateway = await startGateway(file, { directory, environment });
  const proxy = await startTurningProxy([gateway.origin]);
  return {
    ...proxy,
    testbed: faces(gateway),
    async change(more) {
      const text = yamlOf({ ...named, ...more }).replaceAll('include: ', `include: ${process.cwd()}/`);
      await writeFile(join(directory, 'gateway.yaml'), text);
      assert.deepEqual((await gateway.gateway.reload()).problems, []);
    },
    async close() {
      proxy.close();
      const { schema: used } = gateway.gateway.find(database)!;
      await gateway.stop();
      await dropSchema(used);
      await rm(directory, { recursive: true, force: true });
    },
  };
}

const processes = 2;

/** A database and counters of its own, and secrets that all share; keys and rows are made and read as by a command. */
async function startFleet(sections: Record<string, unknown>): Promise<Ground> {
  const [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
  const environment = { DATABASE_URL: postgres.url, REDIS_URL: redis.url };
  const secrets = {
    auth: { secret: 'a secret that all of them share, for keys' },
    'protocol-convert': { seal_secret: 'a secret that all of them share, for seals' },
  };
  const fleet = await gather({ ...sections, ...secrets }, processes, { database: postgres.url, environment });
  await Promise.all(fleet.nodes.map((node) => node.start()));
  const proxy = await startTurningProxy(fleet.nodes.map(({ origin }) => origin));
  const { origin } = proxy;
  const { file } = fleet.nodes[0]!;
  const directory = `${file}.command`;
  const log = createLog('silent');
  const gateway = await boot(file, { mode: 'command', environment: { ...environment, DATA_DIR: directory }, log });
  const stop = () => gateway.stop(0);
  return {
    ...proxy,
    testbed: faces({ origin, gateway, directory, lines: [], stop, [Symbol.asyncDispose]: stop }),
    async change(more) {
      await Promise.all(fleet.nodes.map((node) => node.reload(more)));
    },
    async close() {
      proxy.close();
      await stop();
      await fleet.close();
      await Promise.all([postgres.close(), redis.stop()]);
    },
  };
}
