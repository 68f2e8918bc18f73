/** Every extension point, from the sources: who owns it, what is added, and the docstrings of both. */
import { readFileSync } from 'node:fs';
import { filesIn } from '../runner/imports.ts';

export interface Point {
  readonly name: string;
  /** What messages call it. */
  readonly title: string;
  readonly file: string;
  readonly added: string;
  readonly description: string;
  readonly members: readonly { readonly signature: string; readonly text: string }[];
}

const prose = (comment: string) =>
  comment
    .replace(/^\s*\/\*\*|\*\/\s*$/g, '')
    .replace(/\n\s*\* ?/g, '\n')
    .replace(/\s+/g, ' ')
    .trim();

export function extensionPoints(): Point[] {
  const files = filesIn('core', 'plugins').filter(
    (file) => file.endsWith('.ts') && !file.startsWith('plugins/console/web/'),
  );
  return files.flatMap((file) => {
    const text = readFileSync(file, 'utf8');
    return [...text.matchAll(/export const (\w+) = defineExtensionPoint<([\w |]+)>\((?:'([^']+)'|"([^"]+)")/g)].map(
      ([, name, added, plain, quoted], index) => {
        const before = text.slice(0, [...text.matchAll(/export const \w+ = defineExtensionPoint</g)][index]!.index);
        const description = /\/\*\*(?:(?!\*\/)[\s\S])*\*\/\s*$/.exec(before)?.[0] ?? '';
        return {
          ...{ name: name!, title: (plain ?? quoted)!, file, added: added! },
          ...{ description: prose(description), members: membersOf(text, added!.split(' ')[0]!) },
        };
      },
    );
  });
}

/** The members of an interface with their docstrings; those of what it extends are in the file. */
function membersOf(text: string, name: string) {
  const body = new RegExp(`interface ${name}\\b[^{]*\\{\\n([\\s\\S]*?)\\n\\}`).exec(text)?.[1];
  if (body === undefined) return [];
  return [
    ...body.matchAll(
      /(?: {2}(\/\*\*(?:(?!\*\/)[\s\S])*\*\/)\n)? {2}((?:readonly )?\w+\??[(:<][\s\S]*?);\n?(?=\n? {2}\S|$)/g,
    ),
  ].map(([, comment, signature]) => ({
    signature: signature!.replace(/\/\*\*[\s\S]*?\*\//g, '').replace(/\s+/g, ' '),
    text: comment === undefined ? '' : prose(comment),
  }));
}
