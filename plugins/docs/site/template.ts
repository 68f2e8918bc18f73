/** Templates of pages: Markdown with `{{name}}` for a value, and, on a line of its own, for a block. Pure. */
import { code, plain } from './markdown.ts';

export interface Gaps {
  /** Texts, which stand in code as they are and are escaped elsewhere. */
  readonly values: Readonly<Record<string, string>>;
  /** Markdown. */
  readonly blocks: Readonly<Record<string, () => string>>;
}

/** A name that is neither stays as it is written: operators' own texts may show such braces. */
export function fillTemplate(template: string, { values, blocks }: Gaps): string {
  let fence: string | undefined;
  const lines = template.split(/\r?\n/).map((line) => {
    const mark = /^\s{0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    const isInside = fence !== undefined;
    if (mark !== undefined && !isInside) fence = mark;
    else if (mark !== undefined && fence !== undefined && line.trim().startsWith(fence) && /^[`~]+$/.test(line.trim()))
      fence = undefined;
    const block = isInside ? undefined : /^\{\{([\w-]+)\}\}$/.exec(line.trim())?.[1];
    if (block !== undefined && Object.hasOwn(blocks, block)) return blocks[block]!();
    return filledLine(line, values, isInside);
  });
  return lines.join('\n');
}

function filledLine(line: string, values: Gaps['values'], isCode: boolean): string {
  const textOf = (name: string) => (Object.hasOwn(values, name) ? values[name]! : undefined);
  if (isCode) return line.replace(/\{\{([\w-]+)\}\}/g, (whole, name: string) => textOf(name) ?? whole);
  // A value that is alone in code gets the marks that it needs.
  const alone = line.replace(/(?<!`)`\{\{([\w-]+)\}\}`(?!`)/g, (whole, name: string) => {
    const value = textOf(name);
    return value === undefined ? whole : code(value);
  });
  return alone
    .split(/(`+[^`]*`+)/)
    .map((part) =>
      part.replace(/\{\{([\w-]+)\}\}/g, (whole, name: string) => {
        const value = textOf(name);
        if (value === undefined) return whole;
        return part.startsWith('`') ? value.replaceAll('`', "'") : plain(value);
      }),
    )
    .join('');
}
