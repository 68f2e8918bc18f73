/** Words of one account: answers that have them, and the search for them in all that a gateway keeps. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { sql } from 'drizzle-orm';
import { database } from '../../plugins/common/domain/database.ts';
import type { TestGateway } from '../helpers/gateway.ts';
import type { TestRedis } from '../helpers/redis.ts';

/** A whole answer of a vendor in each protocol. */
export const answers = {
  chat: (text: string) => ({
    id: 'c1',
    object: 'chat.completion',
    created: 1,
    model: 'replay',
    choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
    usage: { prompt_tokens: 5, completion_tokens: 5, total_tokens: 10 },
  }),
  responses: (text: string) => ({
    id: 'resp_r1',
    object: 'response',
    created_at: 1,
    status: 'completed',
    model: 'replay',
    output: [
      {
        id: 'msg_1',
        type: 'message',
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text, annotations: [] }],
      },
    ],
    usage: { input_tokens: 5, output_tokens: 5, total_tokens: 10 },
  }),
  messages: (text: string) => ({
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model: 'replay',
    content: [{ type: 'text', text }],
    stop_reason: 'end_turn',
    stop_sequence: null,
    usage: { input_tokens: 5, output_tokens: 5 },
  }),
  gemini: (text: string) => ({
    candidates: [{ index: 0, content: { role: 'model', parts: [{ text }] }, finishReason: 'STOP' }],
    usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 5, totalTokenCount: 10 },
    modelVersion: 'replay',
  }),
};

/** A word as text, in hexadecimal digits and at each of the three places of base64. */
function formsOf(word: string): string[] {
  const inBase64 = [0, 1, 2].map((shift) => {
    const text = Buffer.from(' '.repeat(shift) + word).toString('base64');
    // The first and the last characters depend on what stands beside the word.
    return text.slice(shift === 0 ? 0 : 4, -4);
  });
  return [word, Buffer.from(word).toString('hex'), ...inBase64];
}

interface Places {
  readonly gateway: TestGateway;
  readonly redis: TestRedis | undefined;
}

/** Names of the tables, files, keys and lines with one of the words. */
export async function placesOf({ gateway, redis }: Places, words: readonly string[]): Promise<string[]> {
  const forms = words.flatMap(formsOf);
  const found = new Set<string>();
  const store = gateway.gateway.find(database)!;
  const tables = (await store.orm.execute(
    sql`select table_name as name from information_schema.tables where table_schema = ${store.schema}`,
  )) as unknown as { name: string }[];
  for (const { name } of tables) {
    const table = sql`${sql.identifier(store.schema)}.${sql.identifier(name)}`;
    const rows = (await store.orm.execute(sql`select t::text as text from ${table} as t`)) as unknown as {
      text: string;
    }[];
    if (rows.some(({ text }) => forms.some((form) => text.includes(form)))) found.add(`table ${name}`);
  }
  for (const entry of readdirSync(gateway.directory, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    const bytes = readFileSync(join(entry.parentPath, entry.name));
    if (forms.some((form) => bytes.includes(form))) found.add('file');
  }
  if (gateway.lines.some((line) => forms.some((form) => line.includes(form)))) found.add('log');
  if (redis !== undefined) {
    redis.command('SAVE');
    const [, directory] = redis.command('CONFIG', 'GET', 'dir').split('\n');
    const bytes = readFileSync(join(directory!, 'dump.rdb'));
    if (forms.some((form) => bytes.includes(form))) found.add('redis');
  }
  return [...found].sort();
}
