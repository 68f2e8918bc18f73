/** Commands about the console's people. */
import type { Command } from '../../core/contract.ts';
import { firstPath, type Links } from './people/links.ts';

export function consoleCommands(links: Links, origin: string): Command[] {
  return [
    {
      name: 'console operator-link',
      summary: 'Makes a link by which somebody becomes an operator, once, within 24 hours',
      async run() {
        const path = firstPath(await links.make('first_operator'));
        const where = origin === '' ? `, at the address of this gateway:\n${path}` : `:\n${origin}${path}`;
        return {
          json: { path, ...(origin === '' ? {} : { url: origin + path }) },
          text: `Open this within 24 hours to become an operator; it works once${where}`,
        };
      },
    },
  ];
}
