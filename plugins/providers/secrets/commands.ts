/** Operator commands for the stored keys of vendors: the texts come from standard input, and none is printed. */
import type { Command, CommandResult } from '../../../core/contract/commands.ts';
import { GatewayError } from '../../../core/contract/errors.ts';
import { duration } from '../../../core/contract/schema.ts';
import type { SecretOverlap, VendorSecrets, VendorSecretView } from '../../common/domain/admin/vendor-secrets.ts';

type Input = NodeJS.ReadableStream & { readonly isTTY?: boolean };

const mostBytes = 64 * 2 ** 10;
const commandLine = 'command line';

export function secretCommands(secrets: VendorSecrets, input: () => Input = () => process.stdin): Command[] {
  const change = (name: string, summary: string, isNew: boolean, usual: SecretOverlap): Command => ({
    name,
    summary,
    arguments: ['<name>'],
    options: {
      '--overlap <time>': 'how long the earlier one is used too: 24h, none, or worked (until the new one answers)',
    },
    async run({ name: secret, overlap }) {
      const keeps = typeof overlap === 'string' ? overlapOf(overlap) : usual;
      if (!isNew && !secrets.list().some((one) => one.name === secret && one.state !== 'missing'))
        throw new GatewayError('not_found', 'There is no such secret: "providers secret set" stores it.');
      const view = await secrets.set(String(secret), await textFrom(input()), commandLine, keeps, isNew);
      return { json: view, text: lineOf(view) };
    },
  });
  return [
    change(
      'providers secret set',
      'Stores a key of a vendor, read from standard input; settings name it secret:NAME',
      true,
      0,
    ),
    change(
      'providers secret rotate',
      'Replaces a stored key; the earlier one is used until the new one has answered',
      false,
      'worked',
    ),
    {
      name: 'providers secret list',
      summary: 'Lists the stored keys of vendors: names, last four characters, fingerprints, use',
      run: async (): Promise<CommandResult> => {
        const views = secrets.list();
        return { json: views, text: views.length === 0 ? 'No secret is stored.' : views.map(lineOf).join('\n') };
      },
    },
    {
      name: 'providers secret delete',
      summary: 'Deletes a stored key with its earlier ones',
      arguments: ['<name>'],
      async run({ name }) {
        await secrets.remove(String(name));
        return { json: { name }, text: `${name} is deleted.` };
      },
    },
  ];
}

function overlapOf(text: string): SecretOverlap {
  if (text === 'worked') return text;
  const parsed = duration().safeParse(text === 'none' ? '0s' : text);
  if (parsed.success) return parsed.data;
  throw new GatewayError('invalid_request', `--overlap ${parsed.error.issues[0]!.message}, none, or worked.`, {
    field: 'overlap',
  });
}

async function textFrom(input: Input): Promise<string> {
  if (input.isTTY === true) process.stderr.write('Paste the key, then press Enter and Ctrl-D.\n');
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of input) {
    parts.push(Buffer.from(part as Buffer));
    bytes += parts.at(-1)!.length;
    if (bytes > mostBytes) throw new GatewayError('invalid_request', 'The key is longer than 64 KB.');
  }
  return Buffer.concat(parts).toString('utf8');
}

function lineOf({ name, state, lastFour, fingerprint, setBy, usedBy, older }: VendorSecretView): string {
  const marks = state === 'stored' ? `…${lastFour} (${fingerprint}), set by ${setBy}` : stateWords[state];
  const earlier = older.map(
    (one) =>
      `; also …${one.lastFour} ${one.untilWorked ? 'until the new one has answered' : `until ${dateOf(one.until)}`}`,
  );
  return `${name}: ${marks}; used by ${usedBy.join(', ') || 'no provider'}${earlier.join('')}`;
}

const stateWords = { unreadable: 'cannot be decrypted with the key of this gateway', missing: 'not stored' };
const dateOf = (at: number | undefined) => (at === undefined ? '' : new Date(at).toISOString());
