/** The goals that are followed, the sections of the guide that say how, and what a reader then has. */
import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Reader, Section } from './reader.ts';

export interface Goal {
  readonly name: string;
  /** The goal that its pages take for granted. */
  readonly after?: string;
  readonly sections: readonly Section[];
  check?(reader: Reader): Promise<void> | void;
}

const messages = [{ role: 'user', content: 'Hello' }];

/** In this order, on one machine: a person who goes through the guide. */
export const goals: readonly Goal[] = [
  {
    name: 'start',
    sections: [['start', 'Without any account']],
    check: ({ said }) => assert.match(said, /"choices": ?\[/),
  },
  {
    name: 'coding-client',
    after: 'start',
    sections: [
      ['coding-clients', 'A key for it'],
      ['coding-clients', 'One command'],
    ],
    check({ said, home }) {
      assert.match(said, /gpt-5\.4-mini has answered/);
      const settings = join(home, '.claude/settings.json');
      assert.ok(!existsSync(settings) || !readFileSync(settings, 'utf8').includes('localhost'), 'undo left something');
    },
  },
  {
    name: 'vendor',
    sections: [['start', 'With a real vendor']],
    check: ({ said }) => assert.match(said, /"status": ?"completed"/),
  },
  {
    name: 'local-server',
    after: 'vendor',
    sections: [['vendors', 'A server on this machine']],
    async check(reader) {
      assert.match(reader.said, /"id": ?"qwen-local"/);
      assert.equal(await reader.statusOf({ model: 'qwen-local', messages }), 200);
    },
  },
  {
    name: 'limits',
    after: 'vendor',
    sections: [['limits', '']],
    async check(reader) {
      assert.equal(await reader.statusOf({ model: 'gpt-5.4-mini', messages }), 200);
      assert.equal(await reader.statusOf({ model: 'gpt-5.4', messages }), 403);
      const dear = { model: 'gpt-5.4-mini', messages, max_completion_tokens: 128_000, n: 16 };
      assert.equal(await reader.statusOf(dear), 402);
      const more = await Promise.all(
        Array.from({ length: 31 }, () => reader.statusOf({ model: 'gpt-5.4-mini', messages })),
      );
      assert.ok(more.includes(429), 'no limit has refused a call');
    },
  },
  {
    name: 'guardrails',
    after: 'vendor',
    sections: [
      ['guardrails', 'The shortest file'],
      ['guardrails', 'In this order'],
    ],
    check({ said }) {
      assert.match(said, /pii: masked, findings: 1,/);
      assert.match(said, /words: passed, findings: 0,/);
      assert.match(said, /Write to \[EMAIL-1\] about the project\./);
    },
  },
  {
    name: 'friends',
    sections: [
      ['friends', 'The shortest file'],
      ['friends', 'Accounts, money, keys'],
      ['friends', 'Codes instead of commands'],
    ],
    check({ said }) {
      assert.match(said, /paid in cash/);
      assert.match(said, /"choices": ?\[/);
    },
  },
];
