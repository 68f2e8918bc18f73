/** The command `secrets rotate`: writes with the first secret of each list what is stored under another, and says what is left. */
import type { Command } from '../../contract/commands.ts';
import type { RotatedSecret } from '../../contract/secret.ts';

const how = `To change a secret: 1. add the new one at the end of its list on every process, 2. move it to the front on every process, 3. run this command, 4. remove
the old one when its line says so. Of one process 1 and 2 are one step.`;

export function rotateCommand(secrets: () => readonly RotatedSecret[]): Command {
  return {
    name: 'secrets rotate',
    summary:
      'Writes values stored under other secrets with the first one of each list, and says when the others can be removed.',
    options: {
      '--give-up': 'discard what still needs another secret than the first, such as keys that were not used since',
    },
    async run({ giveUp }) {
      const results: Result[] = [];
      for (const secret of secrets()) {
        const { setting, uses, secrets: count } = secret;
        results.push({ setting, uses, secrets: count, ...(await secret.rotate(giveUp === true)) });
      }
      return { json: results, text: [...results.map(lineOf), how].join('\n') };
    },
  };
}

type Result = Omit<RotatedSecret, 'rotate'> & Awaited<ReturnType<RotatedSecret['rotate']>>;

function lineOf({ setting, uses, secrets, done, left, advice }: Result): string {
  if (secrets < 2) return `${setting} (${uses}): one secret, nothing to do`;
  return `${setting} (${uses}): ${secrets} secrets, ${done} with the first, ${left} left; ${advice}`;
}
