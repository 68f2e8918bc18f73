/** An S3-compatible server in this process, for tests. */
import { rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { temporaryDirectory } from './temporary-directory.ts';

interface Server {
  run(): Promise<{ port: number }>;
  close(): Promise<void>;
}
const S3rver = createRequire(import.meta.url)('s3rver') as new (options: object) => Server;

export interface TestBucket {
  /** The plugin's `s3` section. */
  readonly settings: {
    bucket: string;
    endpoint: string;
    access_key_id: string;
    secret_access_key: string;
    path_style: boolean;
  };
  close(): Promise<void>;
}

export async function startBucket(): Promise<TestBucket> {
  const directory = temporaryDirectory('bucket-');
  const server = new S3rver({
    port: 0,
    address: '127.0.0.1',
    silent: true,
    directory,
    configureBuckets: [{ name: 'results', configs: [] }],
  });
  const { port } = await server.run();
  return {
    settings: {
      bucket: 'results',
      endpoint: `http://127.0.0.1:${port}`,
      access_key_id: 'S3RVER',
      secret_access_key: 'S3RVER',
      path_style: true,
    },
    async close() {
      await server.close();
      await rm(directory, { recursive: true, force: true });
    },
  };
}
