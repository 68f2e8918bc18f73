/** A gateway file with one mistake, and what `check` prints of it. */
import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { boot } from '../../core/gateway/boot.ts';
import { ConfigError } from '../../core/gateway/config.ts';
import { createLog } from '../../core/gateway/log.ts';
import { lineOfNotice } from '../../core/gateway/notices/notices.ts';
import { temporaryDirectory } from './temporary-directory.ts';

/** Prints nothing. */
export const soundFile = `gateway: shop
listen: 8080
plugins: [storage, request-log, auth, plans, rate-limit, providers, models, billing, route, protocol-convert, shop]
storage:
  database: embedded
plans:
  default: free
  offers:
    free: { price: 0, limits: { rpm: 60 } }
    pro: { price: 20, models: [fast], limits: { rpm: 600 }, grant: { amount: 20, every: month } }
rate-limit:
  endpoints: [chat, messages]
providers:
  acme:
    keys: "\${ACME_KEY}"
    speaks:
      chat: https://api.acme.example/v1
      messages: https://api.acme.example
    timeouts: { connect: 5s }
models:
  fast:
    owned_by: acme
    targets: [acme/acme-fast]
    price: { input: 1, output: 2 }
    created: 2026-01-01
  slow:
    owned_by: acme
    targets: [acme/acme-slow]
    price: { input: 1, output: 2 }
    created: 2026-01-01
`;

/** The mistake in words, the text of the sound file that is replaced, the text in its place, and the lines that are printed. */
type OperatorMistake = readonly [mistake: string, from: string, to: string, ...printed: string[]];

/** Words of the libraries that read YAML and check schemas. */
const foreignWords = /expected|invalid|received|instance|oneOf|anyOf|regex|zod|unresolved|implicit|flow-|scalar/i;

const secretKey = 'sk-secret-value-1';

test('check prints nothing for a file without a mistake', async () => assert.deepEqual(await linesOf(soundFile), []));

export function testMistakes(mistakes: readonly OperatorMistake[]): void {
  for (const [mistake, from, to, ...printed] of mistakes) {
    test(`check explains: ${mistake}`, async () => {
      assert.ok(soundFile.includes(from), 'the text to replace is not in the file');
      const lines = await linesOf(soundFile.replace(from, () => to));
      assert.deepEqual(lines, printed);
      assert.doesNotMatch(lines.join('\n'), foreignWords);
      assert.ok(!lines.join('\n').includes(secretKey), 'a key is printed');
    });
  }
}

/** Problems and notices, as `check` prints them; files without their directory. */
export async function linesOf(yaml: string): Promise<string[]> {
  const directory = temporaryDirectory('mistakes-');
  const file = join(directory, 'gateway.yaml');
  writeFileSync(file, yaml);
  try {
    const odd = { QUOTED: `'${secretKey}'`, BROKEN: `${secretKey}-of-a-file-with\r\n` };
    const environment = { ACME_KEY: secretKey, DATA_DIR: directory, ...odd };
    const gateway = await boot(file, { mode: 'check', log: createLog('silent'), environment });
    const notices = gateway
      .notices()
      .map((notice) => `${notice.level}: ${lineOfNotice(notice)}`.replaceAll(`${directory}/`, ''));
    await gateway.stop(0);
    return notices;
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    return error.problems.map(({ where, message }) => `${where}: ${message}`.replaceAll(`${directory}/`, ''));
  }
}
