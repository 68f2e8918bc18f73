/** Pages and tables of the reference. */

const written = 'Written by `npm run docs`; nothing here is changed by hand.';

export const page = (title: string, ...parts: readonly string[]) =>
  `# ${title}\n\n${written}\n\n${parts.join('\n\n')}\n`;

export const table = (head: readonly string[], rows: readonly (readonly string[])[]) =>
  [head, head.map(() => '---'), ...rows]
    .map((row) => `| ${row.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`)
    .join('\n');
