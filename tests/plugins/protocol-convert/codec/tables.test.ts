/**
 * The tables of the codecs: what each makes of a client's request, a prompt, an upstream's answer, and events.
 * With `TABLES=write` the tables get what the codecs give; then `npm run format`, and read the difference.
 */
import assert from 'node:assert/strict';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { test } from 'node:test';
import type { Codec } from '../../../../plugins/common/canonical/codec.ts';
import { chatCodec } from '../../../../plugins/protocol-convert/protocols/chat/codec.ts';
import { geminiCodec } from '../../../../plugins/protocol-convert/protocols/gemini/codec.ts';
import { messagesCodec } from '../../../../plugins/protocol-convert/protocols/messages/codec.ts';
import { responsesCodec } from '../../../../plugins/protocol-convert/protocols/responses/codec.ts';
import { run, type Seals, type Step } from './steps.ts';

interface Table {
  readonly protocol: keyof typeof codecs;
  /** What all steps of the table have, unless they say otherwise. */
  readonly defaults: Pick<Step, 'encode' | 'reply' | 'events'>;
  readonly rows: readonly (Seals & { readonly title: string; readonly steps: readonly Step[] })[];
}

const codecs: Readonly<Record<'chat' | 'gemini' | 'messages' | 'responses', Codec>> = {
  chat: chatCodec,
  gemini: geminiCodec,
  messages: messagesCodec,
  responses: responsesCodec,
};
const folder = new URL('tables/', import.meta.url);

for (const file of readdirSync(folder)) {
  const { protocol, defaults, rows } = JSON.parse(readFileSync(new URL(file, folder), 'utf8')) as Table;
  if (process.env['TABLES'] === 'write') {
    const written = rows.map(({ title, steps, ...seals }) => ({
      title,
      ...seals,
      steps: steps.map((step) => ({ ...step, gives: run(codecs[protocol], step, seals, defaults) })),
    }));
    writeFileSync(new URL(file, folder), JSON.stringify({ protocol, defaults, rows: written }));
  }
  for (const { title, steps, ...seals } of rows)
    test(`${protocol}: ${title}`, () => {
      for (const { gives, ...step } of steps) assert.deepEqual(run(codecs[protocol], step, seals, defaults), gives);
    });
}
