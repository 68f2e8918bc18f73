/** The page of conformance: what was run, what held and what is not offered, from the files that the suites write. */
import { readFileSync } from 'node:fs';
import { notOffered } from '../../plugins/endpoints/unrouted.ts';
import { type Row, rowsOf } from '../conformance/results.ts';
import { readPage } from '../matrix/page.ts';
import { page, table } from './markdown.ts';

interface Shown {
  readonly suite: string;
  readonly title: string;
  readonly says: string;
  /** Head of the first column. */
  readonly of: string;
  readonly command: string;
  /** Why it is run by hand; absent: it is part of CI. */
  readonly byHand?: string;
}

const suites: readonly Shown[] = [
  {
    suite: 'matrix',
    title: 'Any protocol to any protocol',
    says: 'Each feature from a client of each protocol to a vendor of each, whole and streamed, over real sockets. *Exact*: every byte is kept. *Mapped*: the other protocol has a word for it. *Emulated*: something stands in. *Refused*: an error names the field. *Cannot ask*: the client’s protocol has no word for it. [By feature, with what stands in](../../../tests/matrix/README.md).',
    of: 'client → vendor',
    command: 'npm run matrix',
  },
  {
    suite: 'recordings',
    title: 'Recorded exchanges with vendors',
    says: recordedVendors(),
    of: 'protocol',
    command: 'npm run test:files -- tests/relay/recordings.test.ts',
  },
  {
    suite: 'open-responses-program',
    title: 'Open Responses: the official compliance program',
    says: 'Of openresponses/openresponses at the commit in the table, unchanged, against a gateway before a vendor of each protocol, and before one that is called over WebSocket.',
    of: 'vendor speaks',
    command: 'npm run test:open-responses -- DIR',
    byHand: 'since its program is not in a registry',
  },
  {
    suite: 'open-responses',
    title: 'Open Responses: what its specification requires',
    says: 'Members of every object and event, ends of answers, kept answers, compaction, turns over WebSocket. *vendor* is the simulated vendor without a gateway; *socket* is one that the gateway calls over WebSocket.',
    of: 'vendor speaks',
    command: 'npm run test:files -- "tests/open-responses/*.test.ts"',
  },
  {
    suite: 'javascript',
    title: 'Official SDKs in JavaScript, and the AI SDK',
    says: 'Calls are billed, and bills compared with what the vendor says. *silence*: a vendor says nothing for 17 seconds in the middle of an answer, and every client reads it to its end.',
    of: 'tests of',
    command: 'npm run test:files -- "tests/sdk/*.test.ts"',
  },
  {
    suite: 'python',
    title: 'Official SDKs in Python',
    says: 'The same calls, whole and streamed, at once and in turns, and the code that the console shows.',
    of: 'package',
    command: 'npm run test:python',
  },
  {
    suite: 'go',
    title: 'Google’s SDK in Go',
    says: 'It reads streams with a silence of 17 seconds to their end, from a vendor of each protocol. Nothing else of it is tried.',
    of: 'package',
    command: 'npm run test:go',
  },
  {
    suite: 'mcp',
    title: 'The Model Context Protocol’s own suite',
    says: 'Unchanged, for 2025-11-25: against `/mcp`, before a server with the tools that it names, and with the gateway as the client of its servers and authorization servers, each connected by a person. Each scenario that fails is [listed with its reason](../../../tests/mcp/expected.yaml); one that passes by now fails the run.',
    of: 'gateway',
    command: 'npm run test:mcp',
    byHand: 'since it takes two minutes',
  },
  {
    suite: 'clients',
    title: 'Coding clients',
    says: 'The programs themselves, without a network but loopback: asked for the content of a file, they call their own tool and report the secret word in it (Aider, which has none, edits the file), before a vendor of each of the four protocols. All but Copilot have the settings that `connect` writes, which `connect --undo` takes back byte for byte. [What must hold](../../../tests/clients/README.md#what-must-hold).',
    of: 'client',
    command: 'npm run test:clients -- --fleet',
  },
  {
    suite: 'open-webui',
    title: 'A chat program: Open WebUI',
    says: 'It offers the gateway’s models, streams a whole chat with a model of a vendor of each protocol, billed as that vendor reports, and keeps a picture that it ordered. [How it is started](../../../tests/clients/README.md#open-webui).',
    of: 'program',
    command: 'npm run test:open-webui',
    byHand: 'since it takes 1.8 GB and up to two minutes to start',
  },
];

export function conformancePage(): string {
  return page(
    'Conformance',
    'What was run against this gateway, in which version, when, and what held. Each suite writes its counts into a file of `plugins/docs/conformance/`; a run that counts something else than its file says fails. No test calls a real vendor: vendors are played by recordings, and by stand-ins that refuse what the real ones refuse.',
    ...suites.filter(({ suite }) => rowsOf(suite).length > 0).map(section),
    '## Not offered',
    'What a call of a model cannot carry from one protocol to another one is refused by an error that names the field:',
    refusedConversions(),
    'Addresses of vendors that this gateway answers with 404 `unknown_url` and a sentence that says so:',
    table(
      ['address', 'why'],
      Object.entries(notOffered)
        .toSorted(([one], [other]) => one.localeCompare(other, 'en'))
        .map(([segment, { why }]) => [`\`/v1…/${segment}\``, why]),
    ),
  );
}

function section({ suite, title, says, of, command, byHand }: Shown): string {
  const rows = rowsOf(suite);
  const counted = [...new Set(rows.flatMap(({ counts }) => Object.keys(counts)))];
  const hasVersions = rows.some(({ version }) => version !== undefined);
  const lines = rows.map((row) => [
    row.what,
    ...(hasVersions ? [row.version ?? '–'] : []),
    ...counted.map((name) => String(row.counts[name] ?? 0)),
    row.date,
  ]);
  const head = [of, ...(hasVersions ? ['version'] : []), ...counted, 'last counted'];
  const ci = byHand === undefined ? 'Part of every run of CI' : `Run by hand, ${byHand}`;
  return `## ${title}\n\n${says}\n\n${ci}: \`${command}\`.\n\n${table(head, sums(rows, lines, counted, hasVersions))}`;
}

/** With a last line that sums up, where there are several. */
function sums(
  rows: readonly Row[],
  lines: readonly (readonly string[])[],
  counted: readonly string[],
  hasVersions: boolean,
): (readonly string[])[] {
  if (rows.length < 2) return [...lines];
  const total = (name: string) => rows.reduce((sum, { counts }) => sum + (counts[name] ?? 0), 0);
  return [...lines, ['**all**', ...(hasVersions ? [''] : []), ...counted.map((name) => `**${total(name)}**`), '']];
}

function recordedVendors(): string {
  const [, ...lines] = readFileSync('tests/fixtures/index.tsv', 'utf8').trimEnd().split('\n');
  const exchanges = lines
    .map((line) => line.split('\t'))
    .filter(([protocol]) => protocol !== 'images' && protocol !== 'video');
  const vendors = [...new Set(exchanges.map(([, , vendor]) => vendor!))].toSorted();
  return `Answers of ${vendors.length} vendors, recorded by ${sources(exchanges)} public projects, through a real gateway: what leaves is what the vendor sent, byte for byte, also when it comes in 50 pieces, and it is metered as the vendor counted. [Where they are from](../../../tests/fixtures/README.md). Vendors: ${vendors.join(', ')}.`;
}

function sources(exchanges: readonly (readonly string[])[]): number {
  return new Set(exchanges.map((columns) => columns.at(-1)!.split(':')[0])).size;
}

/** As the matrix notes them: `- audio in, refused: the error names … (chat → responses, …)`. */
function refusedConversions(): string {
  const reasons: Readonly<Record<string, string>> = {
    'audio in': 'the vendor’s protocol takes no sound in a prompt',
    'two answers': 'the vendor’s protocol gives one answer a call; the client can call twice',
  };
  const lines = readPage()
    .split('\n')
    .flatMap((line) => {
      const [, name, field, places] = /^- (.*), refused: the error names (`.*`) \((.*)\)$/.exec(line) ?? [];
      return name === undefined ? [] : [[name, places!, field!, reasons[name] ?? missing(name)]];
    });
  return table(['feature', 'client → vendor', 'the error names', 'why'], lines);
}

function missing(name: string): never {
  throw new Error(`tests/docs/conformance.ts does not say why "${name}" is refused`);
}
