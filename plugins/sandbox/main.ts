/** Runs the vendor as a separate process: `node --import tsx plugins/sandbox/main.ts --port 9400`. */
import { randomBytes } from 'node:crypto';
import { parseArgs } from 'node:util';
import { startVendor } from './vendor.ts';

const { values } = parseArgs({
  options: {
    port: { type: 'string', default: '0' },
    host: { type: 'string', default: '127.0.0.1' },
    key: { type: 'string' },
    'first-byte-ms': { type: 'string', default: '0' },
    'chunk-ms': { type: 'string', default: '0' },
  },
});

const vendor = await startVendor({
  host: values.host,
  port: Number(values.port),
  key: values.key,
  firstByteMs: Number(values['first-byte-ms']),
  chunkMs: Number(values['chunk-ms']),
  idPrefix: randomBytes(6).toString('hex'),
});
process.stdout.write(`${vendor.origin}\n`);

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => {
    void vendor.close().then(() => process.exit(0));
  });
}
