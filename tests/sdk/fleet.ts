/** Two gateway processes on one PostgreSQL and one Redis, behind a proxy that hands requests out in turn. */
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { boot, type Gateway } from '../../core/gateway/boot.ts';
import { createLog } from '../../core/gateway/log.ts';
import type { BillReport } from '../../plugins/sandbox/bill.ts';
import { startVendor } from '../../plugins/sandbox/vendor.ts';
import { gather } from '../end-to-end/fleet.ts';
import { databaseUrl } from '../helpers/database.ts';
import { hasRedis, startRedis } from '../helpers/redis.ts';
import { startTurningProxy } from '../helpers/turning-proxy.ts';

/** Two processes need a database and counters that both reach. */
export const hasFleet = databaseUrl !== undefined && hasRedis;

export interface Ground {
  readonly origin: string;
  /** The ledger, as a command sees them. */
  readonly gateway: Pick<Gateway, 'find' | 'commands'>;
  bill(): Promise<BillReport>;
  stop(): Promise<void>;
}

/** `offers`: plans beside those of the demo. */
export async function startFleet(offers: object): Promise<Ground> {
  const [vendor, redis] = await Promise.all([startVendor(), startRedis()]);
  const vendors = readFileSync('config/sandbox.yaml', 'utf8').replaceAll('"sandbox:', `"${vendor.origin}`);
  const demo = parse(readFileSync('config/demo.yaml', 'utf8')) as { plans: { offers: object } };
  const environment = { REDIS_URL: redis.url };
  const fleet = await gather(
    {
      ...(parse(vendors) as object),
      plans: { default: 'free', offers: { ...demo.plans.offers, ...offers } },
      auth: { secret: 'a secret that all of them share, for keys' },
      'protocol-convert': { seal_secret: 'a secret that all of them share, for seals' },
    },
    2,
    { environment },
  );
  await Promise.all(fleet.nodes.map((node) => node.start()));
  const proxy = await startTurningProxy(fleet.nodes.map(({ origin }) => origin));
  const gateway = await boot(fleet.nodes[0]!.file, {
    mode: 'command',
    environment: { ...environment, DATA_DIR: `${fleet.nodes[0]!.file}.command`, DATABASE_URL: databaseUrl! },
    log: createLog('silent'),
  });
  return {
    origin: proxy.origin,
    gateway,
    bill: async () => vendor.bill(),
    async stop() {
      proxy.close();
      await gateway.stop(0);
      await fleet.close();
      await Promise.all([vendor.close(), redis.stop()]);
    },
  };
}
