/** The test files that the page of conformance counts, by suite; what has no test files calls `hold` by itself. */
import { globSync, readFileSync } from 'node:fs';
import type { TestContext } from 'node:test';
import { hold, type Result } from './results.ts';

interface Counted {
  readonly suite: string;
  readonly files: RegExp;
  /** The row that a test counts for, by its title and its file. */
  readonly rowOf: (title: string, file: string) => string;
}

const counted: readonly Counted[] = [
  {
    suite: 'recordings',
    files: /^tests\/relay\/recordings\.test\.ts$/,
    rowOf: (title) => title.split(' ')[0]!,
  },
  {
    suite: 'open-responses',
    files: /^tests\/open-responses\/(?:compliance|websocket)\.test\.ts$/,
    rowOf: (title, file) => `${title.split(':')[0]!}, ${file.includes('websocket') ? 'over WebSocket' : 'over HTTP'}`,
  },
  {
    suite: 'javascript',
    // What is left out counts no calls of a client, or depends on programs of the machine.
    files: /^tests\/sdk\/(?!openapi|snippets|fleet|alt)[\w-]+(?:\.process)?\.test\.ts$/,
    rowOf: (_, file) => file.split('/').at(-1)!.split('.')[0]!,
  },
  {
    suite: 'javascript',
    files: /^tests\/sdk\/alt\.process\.test\.ts$/,
    rowOf: () => 'before the second gateway, with one shape of errors',
  },
];

export const countedFiles = () =>
  globSync('tests/**/*.test.ts').filter((file) => counted.some(({ files }) => files.test(file)));

/** A test of one word imports a file of tests. */
const isImport = (title: string) => /^[a-z-]+$/.test(title);

/** Counts the tests of a file that the page shows, and holds the count against the page when they have ended. */
export function countTests(file: string, context: TestContext): void {
  const found = counted.find(({ files }) => files.test(file));
  if (found === undefined) return;
  const { suite, rowOf } = found;
  const held = new Map<string, number>();
  let hasFailed = false;
  context.afterEach((ended) => {
    const test = ended as TestContext;
    if (!test.passed) hasFailed = true;
    else if (!isImport(test.name)) {
      const what = rowOf(test.name, file);
      held.set(what, (held.get(what) ?? 0) + 1);
    }
  });
  context.after(() => {
    if (hasFailed) return;
    const version = packagesIn(file);
    const results = [...held].map(
      ([what, tests]): Result => ({ what, ...(version === '' ? {} : { version }), counts: { tests } }),
    );
    hold(suite, results, `npm run test:files -- ${file}`);
  });
}

/** The clients that a file imports, with their versions. */
function packagesIn(file: string): string {
  const { devDependencies } = JSON.parse(readFileSync('package.json', 'utf8')) as {
    devDependencies: Record<string, string>;
  };
  const named = Array.from(readFileSync(file, 'utf8').matchAll(/ from '((?:@[\w-]+\/)?[\w-]+)/g), ([, name]) => name!);
  return [...new Set(named)]
    .filter((name) => /^(?:openai|ai|@anthropic-ai\/sdk|@google\/genai|@ai-sdk\/\w+)$/.test(name))
    .toSorted()
    .map((name) => `${name} ${devDependencies[name]}`)
    .join(', ');
}
