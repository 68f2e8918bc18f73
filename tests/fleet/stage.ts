/** A fleet as an operator has it: two gateways of config/fleet.yaml behind nginx, on stores of its own, before a vendor that is a process of its own. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { type Front, hasNginx, startFront } from '../docker/containers.ts';
import { type Fleet, gather } from '../end-to-end/fleet.ts';
import { modelAt } from '../end-to-end/testbed.ts';
import { hasPostgresPrograms, startPostgres, type TestPostgres } from '../helpers/postgres.ts';
import { hasRedis, startRedis, type TestRedis } from '../helpers/redis.ts';
import { startBucket, type TestBucket } from '../helpers/s3.ts';

/** What the machine must have. */
export const hasStores = hasPostgresPrograms && hasRedis;

/** Models that clients ask for: one of each family of upstreams, from the shipped catalogue as far as it has one. */
export const texts = ['deepseek-v4-flash', 'gpt-5.4-mini', 'claude-haiku-4-5-20251001', 'gemini'] as const;
export const picture = 'gpt-image-2';
export const film = 'grok-imagine-video';

/** Prices are raised to this, in USD per million tokens. */
const raised = { input: 2, output: 8 };

export interface Parts {
  readonly vendor: ChildProcess;
  readonly vendorOrigin: string;
  readonly postgres: TestPostgres;
  readonly redis: TestRedis;
  readonly bucket: TestBucket;
  readonly fleet: Fleet;
  /** Undefined: without nginx clients ask the gateways in turn. */
  readonly front: Front | undefined;
}

export class Stage {
  readonly parts: Parts;
  /** Where clients ask, one after the other where the first takes no connection. */
  readonly origins: readonly string[];
  /** Calls without an end in journals that were salvaged. */
  salvaged = 0;
  /** A call of an account that has paused until now. */
  askPaused: () => Promise<void> = async () => {};
  /** When prices were raised: between these times either may hold. */
  raised: { readonly from: number; to: number } | undefined;

  private constructor(parts: Parts) {
    this.parts = parts;
    this.origins = parts.front === undefined ? parts.fleet.nodes.map(({ origin }) => origin) : [parts.front.origin];
  }

  static async open(proxy = true): Promise<Stage> {
    const vendor = spawn(process.execPath, ['plugins/sandbox/main.ts'], { stdio: ['ignore', 'pipe', 'inherit'] });
    const vendorOrigin = String((await once(vendor.stdout, 'data'))[0]).trim();
    const [postgres, redis, bucket] = await Promise.all([startPostgres(), startRedis(), startBucket()]);
    const { settings } = bucket;
    const environment = {
      REDIS_URL: redis.url,
      AUTH_SECRET: 'a secret that all of them share, for keys',
      SEAL_SECRET: 'a secret that all of them share, for seals',
      S3_BUCKET: settings.bucket,
      S3_ENDPOINT: settings.endpoint,
      S3_ACCESS_KEY_ID: settings.access_key_id,
      S3_SECRET_ACCESS_KEY: settings.secret_access_key,
      S3_PATH_STYLE: 'true',
    };
    const base = 'config/fleet.yaml';
    const fleet = await gather(sectionsOf(vendorOrigin), 2, { database: postgres.url, environment, base });
    await Promise.all(fleet.nodes.map((node) => node.start()));
    const ports = fleet.nodes.map(({ origin }) => Number(new URL(origin).port));
    const front = proxy && hasNginx ? await startFront(ports) : undefined;
    return new Stage({ vendor, vendorOrigin, postgres, redis, bucket, fleet, front });
  }

  /** Other prices of the texts, in force as soon as each gateway has read its file. */
  async raisePrices(): Promise<void> {
    this.raised = { from: Date.now(), to: Number.POSITIVE_INFINITY };
    const models = Object.fromEntries(texts.map((name) => [name, { price: raised }]));
    for (const node of this.parts.fleet.nodes)
      await node.reload(withModels(sectionsOf(this.parts.vendorOrigin), models));
  }

  /** The newest that each gateway has logged of errors. */
  lastWords(): string[] {
    return this.parts.fleet.nodes.flatMap(({ directory }) =>
      readFileSync(`${directory}.log`, 'utf8').trimEnd().split('\n').slice(-20),
    );
  }

  /** Nothing is left of it. */
  async close(): Promise<void> {
    const { vendor, postgres, redis, bucket, fleet, front } = this.parts;
    await fleet.close();
    await front?.close();
    await Promise.all([postgres.close(), redis.stop(), bucket.close()]);
    vendor.kill('SIGKILL');
  }
}

function sectionsOf(vendorOrigin: string): Record<string, unknown> {
  const vendors = readFileSync('config/sandbox.yaml', 'utf8').replaceAll('"sandbox:', `"${vendorOrigin}`);
  return {
    ...(parse(vendors) as object),
    plans: {
      default: 'open',
      offers: {
        open: { price: 0, limits: {} },
        // Its window is used up in the midst of it all: then other money pays.
        granted: {
          price: 0,
          limits: {},
          multiplier: 1.3,
          grant: { amount: 1, every: 'day' },
          windows: { '5h': 0.005 },
        },
      },
    },
    models: {
      gemini: modelAt('google/gemini-3.5-pro'),
      // Over WebSocket: one is translated, one relayed over WebSocket too, one a realtime session.
      m: modelAt('deepseek/m'),
      relayed: modelAt('openai/relayed'),
      voice: { ...modelAt('openai/voice'), kind: 'realtime' },
    },
    server: { trusted_proxies: ['127.0.0.0/8'] },
    console: { sign_up: 'open' },
    files: { fetch: { allow_private: true } },
    'task-store': { lease: '5s', reconcile: '5s' },
    batches: { lease: '5s' },
  };
}

function withModels(sections: Record<string, unknown>, models: Record<string, object>): Record<string, unknown> {
  const before = sections['models'] as Record<string, object>;
  const names = new Set([...Object.keys(before), ...Object.keys(models)]);
  return { models: Object.fromEntries([...names].map((name) => [name, { ...before[name], ...models[name] }])) };
}
